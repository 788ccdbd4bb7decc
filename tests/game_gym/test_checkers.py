"""Checkers: words against the game."""

from __future__ import annotations

from typing import Any

from game_gym.games import find_game
from game_gym.games.checkers import describe
from game_gym.spec import load_variant


def play(moves: str, **params: int) -> Any:
    state = load_variant(find_game("checkers"), params).game.new_initial_state()
    for move in moves.split():
        state.apply_action(state.string_to_action(move))
    return state


def test_a_description_in_full() -> None:
    # The man on d6 takes e5 and lands on f4; from f6, which would have another way, the man has left.
    state = play("c3d4 f6g5 d4e5")
    assert [state.action_to_string(1, action) for action in state.legal_actions()] == ["d6f4"]
    assert describe(state, 1) == (
        "You: x (kings X), moving down\n"
        "8 . x . x . x . x\n"
        "7 x . x . x . x .\n"
        "6 . x . x . . . x\n"
        "5 . . . . o . x .\n"
        "4 . . . . . . . .\n"
        "3 o . . . o . o .\n"
        "2 . o . o . o . o\n"
        "1 o . o . o . o .\n"
        "  a b c d e f g h\n"
        "Moves without a capture: 3 of 40\n"
        "Must go on capturing from: none"
    )


def test_a_capture_under_way_is_described() -> None:
    # The man that came from f2 could capture again; the man on f4 could too, but has to wait.
    state = play("e3f4 f6e5 f2e3 b6c5 e3d4 c5e3 e1f2 d6c5 f2d4", rows=8, columns=6)
    assert describe(state, 0) == (
        "You: o (kings O), moving up\n"
        "8 . x . x . x\n"
        "7 x . x . x .\n"
        "6 . . . . . .\n"
        "5 . . x . x .\n"
        "4 . . . o . o\n"
        "3 o . o . . .\n"
        "2 . o . o . .\n"
        "1 o . o . . .\n"
        "  a b c d e f\n"
        "Moves without a capture: 0 of 40\n"
        "Must go on capturing from: d4"
    )


def test_kings_are_described() -> None:
    state = play("c3d4 b6c5 d4b6 c7a5 e3d4 f6e5 d4f6 d8c7 f6d8", rows=8, columns=6)
    assert describe(state, 1).split("\n")[1] == "8 . x . O . x"
