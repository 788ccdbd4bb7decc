"""Bridge: words against the game. Deals take long to solve: one is enough."""

from __future__ import annotations

import random

import pyspiel
import pytest

from game_gym.games import find_game
from game_gym.games.bridge import describe
from game_gym.spec import load_variant

PASS, DOUBLE, FIRST = 52, 53, 55
DEAL = random.Random(5).sample(range(52), 52)


def test_a_description_in_full() -> None:
    params = {"dealer_vul": False, "non_dealer_vul": True, "dealer": 1}
    state = load_variant(find_game("bridge"), params).game.new_initial_state()
    for card in DEAL:
        state.apply_action(card)
    assert describe(state, 0).split("\n")[-1] == "Auction: none"
    for call in (PASS, FIRST + 4, DOUBLE):  # East passes, South bids 1NT, West doubles
        state.apply_action(call)
    lines = describe(state, 0).split("\n")
    assert lines[:3] == ["You: North, partner South", "Dealer: East", "Vulnerable: North-South"]
    assert lines[7] == "Auction: East Pass, South 1NT, West Dbl"
    # The hand is the one that OpenSpiel shows.
    shown = state.information_state_string(0).split("you hold:\n")[1].split("\n")[:4]
    assert lines[3:7] == shown
    assert sum(len(line.split()) - 1 for line in shown if not line.endswith("none")) == 13


@pytest.mark.parametrize(("config", "told"), [(0, "None"), (1, "N/S"), (2, "All"), (3, "None")])
def test_variants_are_who_is_vulnerable(config: int, told: str) -> None:
    spec = find_game("bridge")
    assert "is_chicago" not in pyspiel.load_game("bridge").get_type().parameter_specification
    assert f"Vul: {told}\n" in str(load_variant(spec, spec.params(config)).game.new_initial_state())
