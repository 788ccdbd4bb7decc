"""Examples in docstrings are run."""

from __future__ import annotations

import builtins
import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = {
    "agents": "gamespiel.agents",
    **{room: room for room in ("task_gym", "game_gym", "trace_gym", "gamespiel")},
}


def modules() -> list[str]:
    """The modules whose text has examples."""
    names = []
    for room, name in ROOMS.items():
        for path in (ROOT / room).rglob("*.py"):
            if ">>> " in path.read_text(encoding="utf-8"):
                names.append(".".join((name, *path.relative_to(ROOT / room).with_suffix("").parts)))
    return sorted(names)


@pytest.mark.parametrize("name", modules())
def test_examples_in_docstrings(name: str) -> None:
    try:
        failed, tried = doctest.testmod(importlib.import_module(name))
    finally:
        vars(builtins).pop("_", None)  # which the interactive display leaves there, for other tests to find
    assert tried and not failed


def test_there_are_some() -> None:
    assert "task_gym.errors" in modules()
