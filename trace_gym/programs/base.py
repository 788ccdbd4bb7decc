"""A program to trace."""

from __future__ import annotations

from dataclasses import dataclass

#: Task ids are below this, whatever the source.
TASKS = 10**11


@dataclass(frozen=True, slots=True)
class Program:
    """A program and what it reads.

    Attributes:
        source: The text, ending in a newline.
        stdin: What stands on its standard input, "" for nothing.
        family: What kind of program it is, as "recursion"; "" where the source has no families.
        level: How hard it is to trace, from 1; 0 where the source has no levels.
    """

    source: str
    stdin: str
    family: str
    level: int
