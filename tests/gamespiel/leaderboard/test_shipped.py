"""The shipped board: its bytes, its addresses and its results, and a part of its games played again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gamespiel.leaderboard import verification
from gamespiel.leaderboard.verification import inspect_board

BOARD = Path(__file__).parents[3] / "benchmarks" / "results" / "leaderboard.json.gz"

EVERY = 40


@pytest.mark.slow
def test_the_shipped_board_is_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of 40 episodes is played again; ``gamespiel verify`` plays all of them."""
    replay = verification._replay

    def replay_some(jobs: Any, *rest: Any) -> None:
        replay(jobs[::EVERY], *rest)

    monkeypatch.setattr(verification, "_replay", replay_some)
    report = inspect_board(BOARD, quick=True)
    assert report.findings == [] and report.episodes > 20


def test_the_shipped_board_is_small() -> None:
    assert BOARD.stat().st_size < 1_500_000
