"""Digests of some programs of every family and level.

``python -m tests.trace_gym.golden_programs`` writes them anew. A changed digest is a changed task: its id
gives another program from then on.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from trace_gym.programs.builtin import LEVELS, NAMES, ids_of, make

FILE = Path(__file__).parent.parent / "data" / "trace_golden.json"

POSITIONS = (0, 1, 2, 1_000_000, -1)
"""Positions of the digested ids among those of a family and level."""


def digest(family: str, level: int) -> str:
    """Returns the SHA-256 of the programs' code, inputs and outputs, with a zero byte after each."""
    ids = ids_of(level, family)
    sha = hashlib.sha256()
    for position in POSITIONS:
        made = make(ids[position])
        for text in (made.program.code, made.program.stdin, made.measured.stdout):
            sha.update(text.encode() + b"\0")
    return sha.hexdigest()


def digests() -> dict[str, dict[str, str]]:
    return {family: {str(level): digest(family, level) for level in LEVELS} for family in NAMES}


if __name__ == "__main__":
    FILE.write_text(json.dumps(digests(), indent=1) + "\n")
