"""Othello: words against the game."""

from __future__ import annotations

from game_gym.games.othello import SPEC, describe
from game_gym.spec import load_variant


def test_a_description_in_full() -> None:
    state = load_variant(SPEC, {}).game.new_initial_state()
    state.apply_action(19)  # d3, which turns d4
    assert describe(state, 1) == (
        "Your discs: o\n  a b c d e f g h\n1 . . . . . . . .\n2 . . . . . . . .\n3 . . . x . . . .\n"
        "4 . . . x x . . .\n5 . . . x o . . .\n6 . . . . . . . .\n7 . . . . . . . .\n8 . . . . . . . .\n"
        "Count: x 4, o 1"
    )
