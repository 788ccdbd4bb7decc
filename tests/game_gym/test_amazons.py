"""Amazons: words against the game."""

from __future__ import annotations

from game_gym.games import find_game
from game_gym.games.amazons import describe
from game_gym.spec import load_variant


def test_descriptions_in_full() -> None:
    """The three actions of a turn: the amazon on (5, 1) goes to (3, 1) and shoots at (1, 1)."""
    state = load_variant(find_game("amazons"), {"board_size": 6}).game.new_initial_state()
    board = ".O..O.\nO....O\n......\n......\nX....X\n.X..X."
    assert describe(state, 0) == f"Your amazons: X\nNow: choose an amazon\nBoard:\n{board}"
    state.apply_action(24)
    board = board.replace("X....X", ".....X")
    assert describe(state, 0) == f"Your amazons: X\nNow: move the amazon from (5, 1)\nBoard:\n{board}"
    state.apply_action(12)
    board = board.replace("......", "X.....", 1)
    assert describe(state, 0) == f"Your amazons: X\nNow: shoot from (3, 1)\nBoard:\n{board}"
    assert state.action_to_string(0, 0) == "X Shoot: (1, 1)"
    state.apply_action(0)
    board = board.replace(".O..O.", "#O..O.")
    assert describe(state, 1) == f"Your amazons: O\nNow: choose an amazon\nBoard:\n{board}"
