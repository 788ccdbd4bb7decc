"""``benchmarks.opponents``: its measurements."""

from __future__ import annotations

import os

import pytest

from benchmarks import opponents


def test_whole_games_and_first_moves() -> None:
    assert len(opponents.SEARCHED) == 18
    whole = opponents.measure_moves("mcts", "leduc_poker", 0, 0.3)
    assert whole["games"] >= 1 and whole["task_id"] == 200000000 and whole["budget"] == "3000x200"
    assert 0 < whole["seconds_per_move"] <= whole["slowest_move"]
    assert whole["seconds_per_turn"] > 0 and whole["turns_per_game"] > 0
    first = opponents.measure_moves("mcts", "hex", 0, 0.0)  # a game is never over after one move
    assert (first["games"], first["moves"], first["turns_per_game"]) == (0, 1, None)
    assert first["opening_move"] == first["slowest_move"] == first["seconds_per_move"]


def test_a_search_that_ends_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """As OpenSpiel's does in gin_rummy with hands of eight; the other variants are measured nevertheless."""
    monkeypatch.setattr(opponents, "play_game", lambda *given: os._exit(1))
    row = opponents.measure_apart("mcts", "gin_rummy", 3, 0.1)
    assert row["crashed"] and row["task_id"] == 300000003 and row["params"]["hand_size"] == 8
    monkeypatch.undo()
    assert not opponents.measure_apart("mcts", "leduc_poker", 0, 0.1)["crashed"]
