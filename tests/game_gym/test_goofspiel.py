"""Goofspiel: the game plays by the rules in its text."""

from __future__ import annotations

import random

import pytest

from game_gym.games.goofspiel import SPEC, describe, rules
from game_gym.spec import load_variant

VARIANTS = [{"num_cards": 4, "points_order": order} for order in ("random", "ascending", "descending")] + [
    {"num_cards": 6, "players": 3},
    {"num_cards": 4, "players": 4, "imp_info": True, "points_order": "random"},
    {"num_cards": 4, "returns_type": "point_difference"},
    {"num_cards": 4, "players": 3, "returns_type": "total_points"},
]


@pytest.mark.parametrize("params", VARIANTS)
def test_the_rules_told_are_the_rules_played(params: dict[str, object]) -> None:
    variant = load_variant(SPEC, params)
    rng = random.Random(0)
    for _ in range(100):
        state = variant.game.new_initial_state()
        cards = variant.actions
        hands = [set(range(1, cards + 1)) for _ in range(variant.players)]
        points, prizes, order = [0] * variant.players, [], variant.params["points_order"]
        while not state.is_terminal():
            if state.is_chance_node():
                assert order == "random"
                state.apply_action(rng.choice(state.legal_actions()))
            lines = dict(line.split(": ") for line in describe(state, 0).split("\n"))
            prizes.append(int(lines["Prize"]))
            left = sorted(set(range(1, cards + 1)) - set(prizes))
            assert lines["Prizes left"] == " ".join(map(str, left))
            assert lines["Your hand"] == " ".join(map(str, sorted(hands[0])))
            assert [action + 1 for action in state.legal_actions(0)] == sorted(hands[0])
            bids = [rng.choice(sorted(hand)) for hand in hands]
            state.apply_actions([bid - 1 for bid in bids])
            settle(bids, prizes[-1], hands, points)
        last = (set(range(1, cards + 1)) - set(prizes)).pop()
        settle([min(hand) for hand in hands], last, hands, points)
        if order != "random":
            assert [*prizes, last] == sorted([*prizes, last], reverse=order == "descending")
        assert state.returns() == pytest.approx(returns(points, variant.params["returns_type"]))


def settle(bids: list[int], prize: int, hands: list[set[int]], points: list[int]) -> None:
    for hand, bid in zip(hands, bids, strict=True):
        hand.remove(bid)
    if bids.count(max(bids)) == 1:
        points[bids.index(max(bids))] += prize


def returns(points: list[int], kind: object) -> list[float]:
    if kind == "total_points":
        return [float(count) for count in points]
    if kind == "point_difference":
        return [count - sum(points) / len(points) for count in points]
    best = points.count(max(points))
    if best == len(points):
        return [0.0] * best
    return [1 / best if count == max(points) else -1 / (len(points) - best) for count in points]


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
    variants = [load_variant(SPEC, {"points_order": "random", **params}) for params in VARIANTS[3:]]
    assert all(200 < len(rules(variant.params)) < 2000 for variant in variants)
    assert "for 3 players" in variants[0].rules and "bids are shown" in variants[0].rules
    assert "secret" in variants[1].rules
    assert [SPEC.params(c)["num_cards"] for c in range(6)] == [8, 10, 12, 14, 16, 8]
