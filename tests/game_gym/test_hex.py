"""Hex: words against the game."""

from __future__ import annotations

from game_gym.games.hex import SPEC, describe
from game_gym.spec import load_variant


def test_a_description_in_full() -> None:
    state = load_variant(SPEC, {"board_size": 3}).game.new_initial_state()
    for action in (1, 6):  # b1, a3
        state.apply_action(action)
    assert describe(state, 0) == (
        "Your stones: x, to connect top and bottom\n   a b c\n1  . x .\n2   . . .\n3    o . ."
    )


def test_task_parameters() -> None:
    assert [SPEC.params(c) for c in range(5)] == [{"board_size": size} for size in (5, 7, 9, 11, 5)]
