"""The house stays small enough to read."""

from __future__ import annotations

import ast
import re
from configparser import ConfigParser
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


def test_what_a_test_may_need_is_left_out_of_the_short_tests() -> None:
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg")
    declared = {line.partition(":")[0] for line in settings["tool:pytest"]["markers"].split("\n") if line}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (needs,) = re.findall(r"^NEEDS := (.*)$", makefile, re.MULTILINE)
    assert {*needs.split(" or "), "sample"} == declared
