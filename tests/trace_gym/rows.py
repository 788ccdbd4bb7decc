"""The data set ``tests/data/programs.jsonl``: 200 programs as users write them, with the expected verdicts.

Every fifth row is unsound: 32 sound programs with five inputs each, and 40 unsound ones in between.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

PATH = Path(__file__).parent.parent / "data" / "programs.jsonl"

SIZE, EVERY = 200, 5
"""Number of rows, and the distance between unsound rows."""


class Row(NamedTuple):
    """A program, its standard input, and a part of the reason against it; "" if it is admitted."""

    program: str
    inputs: str
    reason: str


REASONS = [
    "ZeroDivisionError",
    "IndexError",
    "EOFError",
    "TypeError",
    "module numpy is not in the standard",
    *["output varies"] * 7,  # with the order of a set (2), a hash, chance, a clock, an address, chance
    *["prints nothing"] * 4,
    *["4096 bytes"] * 4,  # one of them is of 4,096 letters and a line end, one of letters of two bytes each
    *["1000000 lines"] * 7,
    *["standard error"] * 3,
    *["not Python|parse"] * 6,
    *["status 'error'"] * 2,  # the program exits with code 3
    "line 3: os.abort",
    "cleaning",  # it prints a fence
]
"""A part of the reason against each unsound row, in the file's order."""


def rows() -> list[Row]:
    """Returns the 200 rows, every fifth unsound."""
    reasons = iter(REASONS)
    records = [json.loads(line) for line in PATH.read_text(encoding="utf-8").split("\n")[:-1]]
    assert len(records) == SIZE == len({(record["program"], record["inputs"]) for record in records})
    assert len(REASONS) == SIZE // EVERY
    return [
        Row(record["program"], record["inputs"], next(reasons) if index % EVERY == EVERY - 1 else "")
        for index, record in enumerate(records)
    ]


def write_rows(path: Path, *programs: str, inputs: str | None = "") -> str:
    """Writes a row for each program. Returns the path as text."""
    path.write_text("".join(json.dumps({"program": text, "inputs": inputs}) + "\n" for text in programs))
    return str(path)
