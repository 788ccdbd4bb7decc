"""Hearts: words against the game."""

from __future__ import annotations

import random

import pytest

from game_gym.games import find_game
from game_gym.games.hearts import SPEC, describe, rules
from game_gym.spec import load_variant


@pytest.mark.parametrize("config", [1, 7])
def test_the_taker_of_a_trick_leads_the_next(config: int) -> None:
    """OpenSpiel says who leads; who took the trick is worked out from suits and ranks."""
    variant = load_variant(find_game("hearts"), SPEC.params(config))
    rng, passes = random.Random(config), set()
    for _ in range(12):
        state = variant.game.new_initial_state()
        while not state.is_terminal():
            if not state.is_chance_node():
                lines = describe(state, state.current_player()).split("\n")
                passes.add(lines[0].split(",")[0])
                tricks = [line for line in lines if line.startswith("Trick ")]
                if tricks and "Current trick: none" in lines:
                    assert tricks[-1].endswith("; taken by you")
            state.apply_action(rng.choice(state.legal_actions()))
    assert passes == {"Pass: none", "Pass: left", "Pass: across", "Pass: right"}


def test_a_player_who_takes_all_26_points() -> None:
    # Cards are dealt in order, so Player 0 has all the clubs and takes every trick, and JD too: 26 - 26 - 10
    # points for Player 0, 26 for everyone else, and no bonus for taking no trick.
    game = load_variant(find_game("hearts"), {"jd_bonus": True, "avoid_all_tricks_bonus": True}).game
    state = game.new_initial_state()
    for action in (0, *range(52)):
        state.apply_action(action)
    while not state.is_terminal():
        state.apply_action(state.legal_actions()[0])
        if len(state.history()) == 53 + 11 * 4:  # eleven hearts, QS for 13 and JD for -10
            assert describe(state, 1).endswith("\nPoints: P0 14, you 0, P2 0, P3 0")
    assert state.returns() == [36, 0, 0, 0]


def test_a_description_in_full() -> None:
    # Cards are dealt in order, so Player 0 has the clubs, 1 the diamonds, 2 the hearts, 3 the spades. Each
    # passes the three lowest to the left; then 2C, now Player 1's, is led.
    state = load_variant(find_game("hearts"), {}).game.new_initial_state()
    for action in (1, *range(52), 0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11, 0):
        state.apply_action(action)
    for action in (9, 51, 48, 44, 8):  # a first trick, and two cards of the second
        state.apply_action(action)
    assert describe(state, 2) == (
        "Pass: left, you give to P3 and receive from P1\n"
        "You passed: 2H 3H 4H\n"
        "You received: 2D 3D 4D\n"
        "Your hand: AH KH QH JH TH 9H 8H 7H 6H 5H 3D 2D\n"
        "Trick 1: P1 2C, you 4D, P3 AS, P0 AC; taken by P0\n"
        "Current trick: P0 KC, P1 4C\n"
        "Points: P0 0, P1 0, you 0, P3 0"
    )


def test_rules_follow_the_parameters() -> None:
    params = load_variant(find_game("hearts"), {"jd_bonus": True}).params
    assert "-10 for JD" in rules(params)
    assert "no trick" not in rules(params)
