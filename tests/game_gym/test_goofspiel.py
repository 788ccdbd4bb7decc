"""Goofspiel: words against the game."""

from __future__ import annotations

import random

import pytest

from game_gym.games.goofspiel import SPEC, describe
from game_gym.spec import load_variant


def play(params: dict[str, object], moves: list[int | list[int]]) -> object:
    state = load_variant(SPEC, params).game.new_initial_state()
    for move in moves:
        state.apply_actions(move) if isinstance(move, list) else state.apply_action(move)
    return state


# Prizes 3, 8, 1; bids 2 against 5, then 4 against 4; then the third prize is up.
MOVES: list[int | list[int]] = [2, [1, 4], 7, [3, 3], 0]


def test_a_description_in_full() -> None:
    state = play({"num_cards": 8, "points_order": "random"}, MOVES)
    assert describe(state, 1) == (
        "Prize: 1\nPrizes left: 2 4 5 6 7\nPrizes won: 3 you, 8 nobody\nPoints: Player 0 0, you 3\n"
        "Your hand: 1 2 3 6 7 8\nPlayer 0's hand: 1 3 5 6 7 8"
    )


def test_secret_bids_are_not_told() -> None:
    params = {"num_cards": 8, "points_order": "random", "imp_info": True}
    state = play(params, MOVES)
    assert describe(state, 1) == (
        "Prize: 1\nPrizes left: 2 4 5 6 7\nPrizes won: 3 you, 8 nobody\nPoints: Player 0 0, you 3\n"
        "Your hand: 1 2 3 6 7 8\nYour bids: 5 4"
    )
    # With 1 for the 3 instead of 2, Player 0 lost it as well.
    assert describe(play(params, [2, [0, 4], *MOVES[2:]]), 1) == describe(state, 1)


@pytest.mark.parametrize("secret", [False, True])
def test_the_text_is_the_information_state(secret: bool) -> None:
    game = load_variant(SPEC, {"num_cards": 4, "points_order": "random", "imp_info": secret}).game
    rng = random.Random(0)
    texts: dict[str, str] = {}
    for _ in range(500):
        state = game.new_initial_state()
        while not state.is_terminal():
            if state.is_chance_node():
                state.apply_action(rng.choice(state.legal_actions()))
                continue
            for seat in range(2):
                information = f"{seat} {state.information_state_string(seat)}"
                text = f"{seat} {describe(state, seat)}"
                assert texts.setdefault(information, text) == text
            state.apply_actions([rng.choice(state.legal_actions(seat)) for seat in range(2)])
    assert len(set(texts.values())) == len(texts)


def test_rules_follow_the_parameters() -> None:
    for players, secret, words in ((3, False, "bids are shown"), (4, True, "secret")):
        variant = load_variant(SPEC, {"num_cards": 6, "players": players, "imp_info": secret})
        assert f"for {players} players" in variant.rules and words in variant.rules
    assert [SPEC.params(c)["num_cards"] for c in range(6)] == [8, 10, 12, 14, 16, 8]
