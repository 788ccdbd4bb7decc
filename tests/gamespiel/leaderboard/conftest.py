"""A small board that is played once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.gamespiel.leaderboard.boards import play, shrink

AGENTS = ("random", "first", "mcts:4")


@pytest.fixture(scope="session")
def baselines_board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The board of three baselines, two deals of each task. Later tests have the whole benchmark again."""
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        path = tmp_path_factory.mktemp("board") / "board.json"
        play(path, *AGENTS, rounds=2)
    return path


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A benchmark of few tasks."""
    shrink(monkeypatch)


@pytest.fixture
def board(baselines_board: Path, small: None, tmp_path: Path) -> Path:
    """A copy of the board."""
    return Path(shutil.copy(baselines_board, tmp_path / "board.json"))
