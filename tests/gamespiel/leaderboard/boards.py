"""A benchmark of few and fast tasks, and files that somebody has forged with care."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from gamespiel.leaderboard import agents, benchmark, results, run
from gamespiel.leaderboard.benchmark import parse_deals
from gamespiel.leaderboard.board import (
    Board,
    digest_episodes,
    keep_units,
    parse_board,
    read_bytes,
    write_board,
)
from gamespiel.leaderboard.results import summarize
from gamespiel.leaderboard.run import BoardOptions, play_board
from gamespiel.leaderboard.verification import Report, inspect_board

GAMES = ("blackjack", "leduc_poker", "goofspiel")
TASKS = ("trace/strings", *GAMES)

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
    monkeypatch.setattr(results, "RESAMPLES", 20)
    monkeypatch.setattr(benchmark, "ANCHORS", ("random", "mcts/60000", "mcts/30000"))


def play(path: Path, *names: str, **options: Any) -> dict[str, Any]:
    return play_board(BoardOptions(path, names, **options), Console(quiet=True))


def read(path: Path) -> dict[str, Any]:
    return parse_board(read_bytes(path), str(path))


def forge(path: Path, edit: Edit, *, results: bool = True) -> Report:
    """Verifies a copy of a board that was edited, by somebody who corrects all digests, and all results too.

    Args:
        path: The board.
        edit: Changes the data in place.
        results: Whether results are made from the forged episodes.
    """
    data = copy.deepcopy(read(path))
    edit(data)
    for entry in data["agents"]:
        entry["episodes_sha256"] = digest_episodes(entry["name"], entry["episodes"])
    if results:
        data["results"] = summarize(_load(data))
    forged = path.with_name("forged.json")
    write_board(forged, data)
    return inspect_board(forged)


def _load(data: dict[str, Any]) -> Board:
    board = Board(parse_deals(data["deals"]), data["track"], data["rounds"])
    for entry in data["agents"]:
        board.entries[entry["name"]] = {key: value for key, value in entry.items() if "episodes" not in key}
        keep_units(board, entry["name"], entry["episodes"])
    return board


def find_rows(data: dict[str, Any], agent: int, task: str) -> list[dict[str, Any]]:
    """Returns an agent's records of a task, in their order."""
    return [row for row in data["agents"][agent]["episodes"] if row["task"] == task]
