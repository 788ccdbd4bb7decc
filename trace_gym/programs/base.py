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
        family: The kind of program, such as "recursion"; None if the source has no families.
        level: The difficulty of tracing, from 1; None if the source has no levels.
        row: Its row of a data set; None if the source has no rows.
    """

    code: str
    stdin: str
    family: str | None = None
    level: int | None = None
    row: int | None = None
