"""``benchmarks.opponents``: its measurements and its arithmetic."""

from __future__ import annotations

import os

import pytest

from benchmarks import opponents, search_moves


def test_whole_games_and_first_moves() -> None:
    whole = search_moves.measure_moves("leduc_poker", 0, 0.3)
    assert whole["games"] >= 1 and whole["task_id"] == 200000000 and whole["budget"] == "3000x200"
    assert 0 < whole["seconds_per_move"] <= whole["slowest_move"]
    assert whole["seconds_per_turn"] > 0 and whole["turns_per_game"] > 0
    first = search_moves.measure_moves("hex", 0, 0.0)  # a game is never over after one move
    assert (first["games"], first["moves"], first["turns_per_game"]) == (0, 1, None)
    assert first["opening_move"] == first["slowest_move"] == first["seconds_per_move"]


def test_a_projection() -> None:
    """8 episodes of 10 turns of 2 s: 80 turns, 160 s; forwards 80 / 4 = 20 s; at most 8 cores are of use."""
    row = {"turns_per_game": 10.0, "seconds_per_turn": 2.0}
    assert opponents.project(row, 8, 4.0) == {"forwards": 20.0, "16": 20.0, "64": 20.0, "640": 20.0}
    assert opponents.project(row, 100, 1000.0) == {"forwards": 1.0, "16": 125.0, "64": 31.2, "640": 20.0}


def test_a_search_that_ends_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """As OpenSpiel's does in gin_rummy with hands of eight; the other variants are measured nevertheless."""
    monkeypatch.setattr(search_moves, "play_game", lambda *given: os._exit(1))
    row = search_moves.measure_apart("gin_rummy", 3, 0.1)
    assert row["crashed"] and row["task_id"] == 300000003 and row["params"]["hand_size"] == 8
    monkeypatch.undo()
    assert not search_moves.measure_apart("leduc_poker", 0, 0.1)["crashed"]
