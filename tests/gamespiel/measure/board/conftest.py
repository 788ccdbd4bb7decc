"""A benchmark of few and fast tasks, a board that is played once, and boards that are forged with care."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gamespiel.measure import ratings
from gamespiel.measure.board import agents, benchmark, results, run
from gamespiel.measure.board.file import digest_episodes, load_board, parse_board, read_bytes, write_board
from gamespiel.measure.board.results import summarize
from gamespiel.measure.board.run import BoardOptions, play_board
from gamespiel.measure.board.verification import Report, inspect_board

TASKS = ("trace/strings", "blackjack", "leduc_poker", "goofspiel")
AGENTS = ("random", "first", "mcts:4")
LATER = "2026-12-24:" + "0123456789abcdef" * 4
"""Deals that are not the fixed ones."""

Edit = Callable[[dict[str, Any]], object]


def shrink(monkeypatch: pytest.MonkeyPatch, tasks: tuple[str, ...] = TASKS) -> None:
    """Leaves few tasks in the benchmark, and anchors that search for milliseconds."""
    for module in (agents, run):
        monkeypatch.setattr(module, "TASK_NAMES", tasks)
    kinds = {
        "games": tuple(task for task in tasks if "/" not in task),
        "traces": tuple(task for task in tasks if "/" in task),
    }
    monkeypatch.setattr(results, "KINDS", kinds)
    monkeypatch.setattr(ratings, "RESAMPLES", 20)
    monkeypatch.setattr(benchmark, "ANCHORS", ("random", "mcts/60000", "mcts/30000"))


def play(path: Path, *names: str, **options: Any) -> dict[str, Any]:
    return play_board(BoardOptions(path, names, **options), Console(quiet=True))


def play_small(path: Path, *names: str, **options: Any) -> Path:
    with pytest.MonkeyPatch.context() as patch:  # later tests have the whole benchmark again
        shrink(patch)
        play(path, *names, **options)
    return path


def read(path: Path) -> dict[str, Any]:
    return parse_board(read_bytes(path), str(path))


def forge(path: Path, edit: Edit, *, results: bool = True) -> Report:
    """Verifies a copy of a board that was edited in place, by somebody who corrects all digests.

    They make results from the forged episodes, too, if ``results`` says so.
    """
    data = read(path)
    edit(data)
    for entry in data["agents"]:
        entry["episodes_sha256"] = digest_episodes(entry["name"], entry["episodes"])
    forged = path.with_name("forged.json")
    write_board(forged, data)
    if results:
        write_board(forged, data | {"results": summarize(load_board(forged))})
    return inspect_board(forged)


def find_rows(data: dict[str, Any], agent: int, task: str) -> list[dict[str, Any]]:
    """Returns an agent's records of a task, in their order."""
    return [row for row in data["agents"][agent]["episodes"] if row["task"] == task]


@pytest.fixture(scope="session")
def baselines_board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The board of three baselines, two deals of each task."""
    return play_small(tmp_path_factory.mktemp("board") / "board.json", *AGENTS, rounds=2)


@pytest.fixture(scope="session")
def models_board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The board of the embedded model, one deal of each task that it can play."""
    return play_small(tmp_path_factory.mktemp("board") / "board.json", "tiny=model:tiny")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A benchmark of few tasks."""
    shrink(monkeypatch)


@pytest.fixture
def board(baselines_board: Path, small: None, tmp_path: Path) -> Path:
    """A copy of the board of baselines."""
    return Path(shutil.copy(baselines_board, tmp_path / "board.json"))


@pytest.fixture
def model_board(models_board: Path, small: None, tmp_path: Path) -> Path:
    """A copy of the board of the embedded model."""
    return Path(shutil.copy(models_board, tmp_path / "model.json"))
