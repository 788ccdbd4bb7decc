"""Golden transcripts of the environments, word for word, on tasks of every family and level.

``python -m tests.trace_gym.golden [ID | programs ...]`` writes all or the named ones anew. Look at the
difference before keeping it: a changed transcript means a changed environment or generator, and a changed
digest of programs is a changed task, whose id gives another program from then on.

Two episodes are complete. The others have all three scores and a digest of every turn.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym

from tests.trace_gym.play import IDS, episode
from trace_gym.admission.measure import execute
from trace_gym.programs.builtin import LEVELS, NAMES, generate, ids_of

FOLDER = Path(__file__).parent.parent / "data" / "golden_trace"

WHOLE = (3, 31)
"""Tasks in full, and tasks as digests: one of each family, the levels in turn."""

DIGESTS = tuple(family + len(NAMES) * (family * 3 % len(LEVELS)) for family in range(len(NAMES)))

FEWER = DIGESTS[::4]
"""False outputs take a good part of a second."""


PROGRAMS = FOLDER.parent / "trace_golden.json"

POSITIONS = (0, 1, 2, 1_000_000, -1)
"""Positions of the digested ids among those of a family and level."""


def path(name: str) -> Path:
    return FOLDER / f"{name}.json"


def transcript(name: str) -> str:
    """Returns JSON with one item per line."""
    env = gym.make(name).unwrapped
    items: list[Any] = []
    for task_id in (*WHOLE, *(FEWER if name == "CodeTraceChoice-v0" else DIGESTS)):
        record = played(env, task_id)
        head = {"task_id": task_id, "turns": len(record), "by_scoring": record[-1][-1]["by_scoring"]}
        items.append({**head, "sha256": hashlib.sha256(line(record).encode()).hexdigest()})
        if task_id in WHOLE:
            items += record
    env.close()
    return "[\n" + ",\n".join(line(item) for item in items) + "\n]\n"


def played(env: Any, task_id: int) -> list[Any]:
    """Returns an episode, without the machine's protection and Python."""
    record = episode(env, task_id, {"task_id": task_id})
    for turn in record:
        del turn[-1]["sandbox"], turn[-1]["python"]
    return record


def line(item: Any) -> str:
    return json.dumps(item, ensure_ascii=False)


def digest(family: str, level: int) -> str:
    """Returns the SHA-256 of the programs' code, inputs and outputs, with a zero byte after each."""
    ids = ids_of(level, family)
    sha = hashlib.sha256()
    for position in POSITIONS:
        program = generate(ids[position])
        for text in (program.code, program.stdin, execute(program.code, program.stdin).stdout):
            sha.update(text.encode() + b"\0")
    return sha.hexdigest()


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[1:] or (*IDS, "programs"):
        if name == "programs":
            digests = {family: {str(level): digest(family, level) for level in LEVELS} for family in NAMES}
            PROGRAMS.write_text(json.dumps(digests, indent=1) + "\n")
        else:
            path(name).write_text(transcript(name), encoding="utf-8")


if __name__ == "__main__":
    main()
