"""Quoridor: words against the game."""

from __future__ import annotations

from game_gym.games import find_game
from game_gym.games.quoridor import SPEC, describe, rules
from game_gym.spec import load_variant


def test_a_description_in_full() -> None:
    # Both pawns step towards each other, Player 0 walls below b1, Player 1 right of d3.
    params = {"board_size": 5, "wall_count": 4}
    state = load_variant(find_game("quoridor"), params).game.new_initial_state()
    for move in ("c4", "c2", "b1h", "d3v", "c3"):
        state.apply_action(next(a for a in state.legal_actions() if state.action_to_string(a) == move))
    assert describe(state, 1) == (
        "You: @ at c2, goal row 5, walls left 3\n"
        "Opponent: O at c3, goal row 1, walls left 3\n"
        "Moves made: 5 of 100\n"
        "   a b c d e\n"
        " 1 . . . . .\n"
        "     -+-\n"
        " 2 . . @ . .\n"
        "\n"
        " 3 . . O .|.\n"
        "          +\n"
        " 4 . . . .|.\n"
        "\n"
        " 5 . . . . ."
    )
    # The jump straight over c3.
    assert "c4" in {state.action_to_string(action) for action in state.legal_actions()}


def test_rules_follow_the_parameters() -> None:
    text = rules(load_variant(find_game("quoridor"), SPEC.params(3)).params)
    assert "on 9 columns (a to i)" in text
    assert "one's 10 walls" in text
    assert "after 324 moves" in text
