"""Go: words against the game."""

from __future__ import annotations

from game_gym.games import find_game
from game_gym.games.go import SPEC, describe, rules
from game_gym.spec import load_variant

FILES = "abcdefghjklmnopqrst"


def test_a_description_in_full() -> None:
    state = load_variant(find_game("go"), SPEC.params(0)).game.new_initial_state()
    for move in ("B b1", "W PASS", "B a2", "W c3", "B e5"):
        state.apply_action(state.string_to_action(move))
    assert "W a1" not in {state.action_to_string(action) for action in state.legal_actions()}  # suicide
    assert describe(state, 1) == (
        "You: white, O\n"
        " 5 . . . . X\n"
        " 4 . . . . .\n"
        " 3 . . O . .\n"
        " 2 X . . . .\n"
        " 1 . X . . .\n"
        "   a b c d e\n"
        "Moves (5 of 50, black first): b1 PASS a2 c3 e5\n"
        "Repeating: none"
    )


def test_a_move_that_repeats_a_position_is_listed() -> None:
    """Black has just taken b1 and c1. If White takes a1, the stones are those of two moves ago."""
    state = load_variant(find_game("go"), SPEC.params(0)).game.new_initial_state()
    for move in ("B b2", "W a2", "B c2", "W b1", "B d1", "W c1", "B a1"):
        state.apply_action(state.string_to_action(move))
    assert describe(state, 1).split("\n")[4:] == [
        " 2 O X X . .",
        " 1 X . . X .",
        "   a b c d e",
        "Moves (7 of 50, black first): b2 a2 c2 b1 d1 c1 a1",
        "Repeating: b1",
    ]
    state.apply_action(state.string_to_action("W b1"))
    assert state.is_terminal() and state.returns() == [0, 0]


def test_a_large_board_has_room_for_its_labels() -> None:
    state = load_variant(find_game("go"), {"board_size": 19}).game.new_initial_state()
    state.apply_action(state.string_to_action("B t19"))
    lines = describe(state, 1).split("\n")
    assert lines[1] == "19 " + ". " * 18 + "X"
    assert lines[20] == "   " + " ".join(FILES)


def test_rules_follow_the_parameters() -> None:
    text = rules(load_variant(find_game("go"), SPEC.params(1)).params)
    assert "board of 7 by 7" in text
    assert "after 98 moves" in text
    assert "White adds 7.5" in text
