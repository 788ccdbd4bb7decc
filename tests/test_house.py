"""The house stays small enough to read."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = (
    "task_gym", "game_gym", "trace_gym", "agents", "gamespiel",
    "scripts", "benchmarks", "examples", "docs",
)  # fmt: skip
LONGEST = 60


def test_no_function_is_longer_than_a_screen() -> None:
    found = []
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    lines = (node.end_lineno or 0) - node.lineno + 1
                    if lines > LONGEST:
                        found.append(f"{path.relative_to(ROOT)}: {node.name} has {lines} lines")
    assert found == []
