"""A program to trace."""

from __future__ import annotations

from dataclasses import dataclass

TASKS = 10**11
"""Number of task ids, for every source."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program and its standard input.

    Attributes:
        code: The program's text.
        stdin: Its standard input, "" for none.
        family: The kind of program, such as "recursion"; "" if the source has no families.
        level: The difficulty of tracing, from 1; 0 if the source has no levels.
    """

    code: str
    stdin: str
    family: str
    level: int
