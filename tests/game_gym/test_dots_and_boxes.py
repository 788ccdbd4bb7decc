"""Dots and boxes: words against the game."""

from __future__ import annotations

from game_gym.games import find_game
from game_gym.games.dots_and_boxes import SPEC, describe, rules
from game_gym.spec import load_variant


def test_a_description_in_full() -> None:
    # All four sides of the top left box, the last by Player 1, who moves again and draws v(1,2).
    state = load_variant(find_game("dots_and_boxes"), {"num_rows": 2, "num_cols": 2}).game.new_initial_state()
    for action in (0, 2, 6, 7, 11):
        state.apply_action(action)
    assert describe(state, 0) == (
        "Your mark: 1\n"
        "Boxes: you 0, opponent 1\n"
        "h    0   1\n"
        "v  0   1   2\n"
        "h0 +---+   +\n"
        "v0 | 2 |\n"
        "h1 +---+   +\n"
        "v1         |\n"
        "h2 +   +   +"
    )
    assert describe(state, 1).split("\n")[:2] == ["Your mark: 2", "Boxes: you 1, opponent 0"]


def test_rules_follow_the_parameters() -> None:
    params = load_variant(find_game("dots_and_boxes"), {**SPEC.params(2), "utility_margin": True}).params
    assert "on 5 rows and 5 columns" in rules(params)
    assert "minus the opponent's" in rules(params)
