"""Bridge: the game plays by the rules in its text. Deals take long to solve: one is enough."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pyspiel
import pytest

from game_gym.games import find_game
from game_gym.games.bridge import describe
from game_gym.spec import load_variant

PASS, DOUBLE, REDOUBLE, FIRST = 52, 53, 54, 55
DEAL = random.Random(5).sample(range(52), 52)


@cache
def dealt(**params: Any) -> Any:
    """The deal, solved, before the first call; clone it."""
    state = load_variant(find_game("bridge"), params).game.new_initial_state()
    for card in DEAL:
        state.apply_action(card)
    return state


def score(level: int, trumps: int, times: int, made: int, vulnerable: bool) -> int:
    """A contract's score in the words of the rules; ``times`` is 1, 2 or 4."""
    short = level + 6 - made
    if short > 0:
        if times == 1:
            return -short * (100 if vulnerable else 50)
        steps = [200, 300, 300] if vulnerable else [100, 200, 200]
        return -sum((steps + [300] * 13)[:short]) * times // 2
    value = level * (20 if trumps < 2 else 30) + 10 * (trumps == 4)
    bonus = (500 if vulnerable else 300) if value * times >= 100 else 50
    if level > 5:
        bonus = {6: (800, 1250), 7: (1300, 2000)}[level][vulnerable]
    over = (20 if trumps < 2 else 30) if times == 1 else 50 * times * (1 + vulnerable)
    return value * times + bonus + (0, 0, 50, 0, 100)[times] - short * over


def test_the_rules_told_are_the_rules_played() -> None:
    rng = random.Random(0)
    seen = set()
    for params in ({}, {"dealer_vul": True, "non_dealer_vul": False, "dealer": 1}):
        for _ in range(400):
            state = dealt(**params).clone()
            dealer, calls = params.get("dealer", 0), []
            bid, bidder, times, first = -1, -1, 1, {}
            while not state.is_terminal():
                speaker = (dealer + len(calls)) % 4
                assert state.current_player() == speaker
                other = (speaker - bidder) % 2 == 1
                legal = [PASS] + [DOUBLE] * (bid >= 0 and other and times == 1)
                legal += [REDOUBLE] * (bid >= 0 and not other and times == 2)
                assert state.legal_actions() == legal + list(range(FIRST + bid + 1, FIRST + 35))
                # Mostly passes and low bids, so that auctions vary.
                action = rng.choice([PASS, *legal[-2:], *state.legal_actions()[: rng.choice((2, 5, 9))]])
                calls.append(action)
                state.apply_action(action)
                if action >= FIRST:
                    bid, bidder, times = action - FIRST, speaker, 1
                    first.setdefault((speaker % 2, bid % 5), speaker)
                elif action != PASS:
                    times *= 2
            if bid < 0:
                assert calls == [PASS] * 4 and state.returns() == [0] * 4
                continue
            assert calls[-3:] == [PASS] * 3
            declarer = first[bidder % 2, bid % 5]
            vulnerable = bool(params) and declarer % 2 == dealer % 2
            text = str(state)
            made = int(text.partition("Declarer tricks: ")[2].split("\n")[0])
            points = score(bid // 5 + 1, bid % 5, times, made, vulnerable)
            assert state.returns() == [points if seat % 2 == declarer % 2 else -points for seat in range(4)]
            seen.add((times, vulnerable, points > 0))
    assert len(seen) > 8


def test_a_description_in_full() -> None:
    state = dealt(dealer_vul=True, non_dealer_vul=False, dealer=1).clone()
    for call in (PASS, FIRST + 4, DOUBLE):  # East passes, South bids 1NT, West doubles
        state.apply_action(call)
    lines = describe(state, 0).split("\n")
    assert lines[:3] == ["You: North, partner South", "Dealer: East", "Vulnerable: East-West"]
    assert lines[7] == "Auction: East Pass, South 1NT, West Dbl"
    # The hand is the one that OpenSpiel shows.
    shown = state.information_state_string(0).split("you hold:\n")[1].split("\n")[:4]
    assert lines[3:7] == shown
    assert sum(len(line.split()) - 1 for line in shown if not line.endswith("none")) == 13
    assert describe(dealt().clone(), 0).split("\n")[2::5] == ["Vulnerable: none", "Auction: none"]


@pytest.mark.parametrize(("config", "told"), [(0, "None"), (1, "N/S"), (2, "All"), (3, "None")])
def test_variants_are_who_is_vulnerable(config: int, told: str) -> None:
    spec = find_game("bridge")
    assert "is_chicago" not in pyspiel.load_game("bridge").get_type().parameter_specification
    assert f"Vul: {told}\n" in str(load_variant(spec, spec.params(config)).game.new_initial_state())
