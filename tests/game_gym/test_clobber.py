"""Clobber: words against the game."""

from __future__ import annotations

from game_gym.games.clobber import SPEC, describe
from game_gym.spec import load_variant


def test_a_description_in_full() -> None:
    state = load_variant(SPEC, {"rows": 3, "columns": 4}).game.new_initial_state()
    action = next(a for a in state.legal_actions() if state.action_to_string(0, a) == "a1b1")
    state.apply_action(action)
    assert describe(state, 1) == "Your pieces: x\n3 o x o x\n2 x o x o\n1 . o o x\n  a b c d"


def test_task_parameters() -> None:
    assert [SPEC.params(c) for c in range(4)] == [{"rows": n, "columns": n} for n in (5, 6, 7, 5)]
