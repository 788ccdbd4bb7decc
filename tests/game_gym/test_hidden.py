"""No observation tells what its seat cannot know: hidden parts are drawn again, and the text stays."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import pyspiel
import pytest

from game_gym.games import DECLARED
from game_gym.prompts import render
from game_gym.spec import Variant, load_variant
from tests.game_gym.play import make
from tests.game_gym.resample import Resampler, exchanged, openspiel, redrawn

TYPE = pyspiel.GameType

#: The way to draw again the hidden part of each game that has one. OpenSpiel's way alone would miss a leak of
#: what it leaves as it was: cards drawn by the other in gin_rummy, the dealer's discard in euchre.
WAYS: dict[str, tuple[Resampler, ...]] = {
    "leduc_poker": (openspiel, redrawn),
    "kuhn_poker": (openspiel, redrawn),
    "blackjack": (openspiel, exchanged),
    "phantom_ttt": (redrawn,),
    "bridge": (openspiel,),
    "liars_dice": (redrawn,),
    "gin_rummy": (openspiel, exchanged),
    "hearts": (openspiel, exchanged),
    "euchre": (openspiel, exchanged),
}

#: Counted among the games of imperfect information by OpenSpiel, as face-down cards are unknown. They are not
#: drawn before they are turned up, so that nothing is there to be told.
NOTHING_DRAWN_AHEAD = "solitaire"

# Beside the variants of task ids: what hides more, or otherwise.
_FURTHER: list[tuple[str, dict[str, Any], Resampler]] = [
    ("leduc_poker", {"players": 3}, redrawn),
    ("kuhn_poker", {"players": 3}, redrawn),
    ("liars_dice", {"numdice": 2, "bidding_rule": "reset-quantity"}, redrawn),
    ("phantom_ttt", {"obstype": "reveal-nothing", "gameversion": "abrupt"}, redrawn),
    ("phantom_ttt", {"obstype": "reveal-numturns", "gameversion": "abrupt"}, redrawn),
    ("gin_rummy", {"oklahoma": True}, exchanged),
    ("goofspiel", {"num_cards": 8, "points_order": "random", "imp_info": True}, redrawn),
    ("goofspiel", {"num_cards": 4, "players": 3, "imp_info": True}, redrawn),
]

CASES = [
    pytest.param(name, DECLARED[name].params(config), way, marks=[pytest.mark.families] if config else [])
    for name, ways in WAYS.items()
    for config in range(DECLARED[name].variants)
    for way in ways
] + [pytest.param(*further) for further in _FURTHER]


def enough(name: str) -> int:
    """States whose hidden part must come out another, in each case."""
    return {"bridge": 6, "gin_rummy": 15}.get(name, 40)


def positions(variant: Variant, rng: random.Random) -> Iterator[tuple[Any, int]]:
    """Turns of random games without end: the live state, and the seat to move."""
    while True:
        state = variant.game.new_initial_state()
        while not state.is_terminal():
            simultaneous = state.is_simultaneous_node()
            if not state.is_chance_node() and rng.random() < 0.4:
                yield state, rng.randrange(variant.players) if simultaneous else state.current_player()
            if simultaneous:
                state.apply_actions(
                    [rng.choice(state.legal_actions(seat)) for seat in range(variant.players)]
                )
            elif not state.legal_actions():
                break  # a hand of gin_rummy that OpenSpiel leaves without a move
            else:
                state.apply_action(rng.choice(state.legal_actions()))


def truth(state: Any) -> str:
    """All there is to a state."""
    return f"{state}{state.history()}"


def twins(variant: Variant, way: Resampler, count: int) -> list[tuple[Any, Any, int]]:
    """Pairs of states that a seat cannot tell apart and that are not the same, and the seat."""
    rng, pairs = random.Random(count), []
    for tried, (state, seat) in enumerate(positions(variant, rng)):
        assert tried < 40 * count, "too few states come out another: this would test nothing"
        other = way(state, seat, rng)
        if other is not None:
            assert other.information_state_string(seat) == state.information_state_string(seat)
            assert other.legal_actions(seat) == state.legal_actions(seat)
            if truth(other) != truth(state):
                pairs.append((state.clone(), other, seat))
        if len(pairs) == count:
            return pairs
    raise AssertionError


def leaks(variant: Variant, pairs: list[tuple[Any, Any, int]]) -> list[tuple[str, str]]:
    """The observations that differ between states that the seat cannot tell apart."""
    texts = [(render(variant, one, seat), render(variant, two, seat)) for one, two, seat in pairs]
    return [pair for pair in texts if pair[0] != pair[1]]


def telling(variant: Variant, secret: Callable[[Any], object]) -> Variant:
    """The variant with a description that adds a secret."""
    described = variant.spec.describe
    spec = replace(variant.spec, describe=lambda state, seat: f"{described(state, seat)}\n{secret(state)}")
    return Variant(spec, variant.params)


@pytest.mark.parametrize(("name", "params", "way"), CASES)
def test_observation_does_not_change_with_what_is_hidden(
    name: str, params: dict[str, Any], way: Resampler
) -> None:
    variant = load_variant(DECLARED[name], params)
    pairs = twins(variant, way, enough(name))
    assert leaks(variant, pairs) == []
    # A description that showed all, or a single bit of it, would have been caught.
    assert len(leaks(telling(variant, truth), pairs)) == len(pairs)
    assert leaks(telling(variant, lambda state: zlib.crc32(truth(state).encode()) % 2), pairs)


def test_the_number_of_unseen_tries_is_not_told_either() -> None:
    variant = load_variant(DECLARED["phantom_ttt"], {"obstype": "reveal-nothing"})
    pairs = twins(variant, redrawn, 60)
    assert leaks(variant, pairs) == []
    assert leaks(telling(variant, lambda state: len(state.history())), pairs)


def test_every_game_that_hides_something_is_looked_at() -> None:
    hiding = set()
    for name, spec in DECLARED.items():
        for config in range(spec.variants):
            kind = load_variant(spec, spec.params(config)).game.get_type()
            # If all is open, chance is drawn when it happens, so that nothing waits to be shown.
            assert kind.chance_mode in (TYPE.ChanceMode.DETERMINISTIC, TYPE.ChanceMode.EXPLICIT_STOCHASTIC)
            if kind.information != TYPE.Information.PERFECT_INFORMATION:
                hiding.add(name)
    assert hiding == {*WAYS, NOTHING_DRAWN_AHEAD}


def test_solitaire_shows_every_card_that_was_drawn() -> None:
    # Cards are 1 to 52, suit by suit and from the ace up in each.
    suits, ranks = "♠♥♣♦", "A23456789TJQK"
    names = [f"{rank}{suit}" for suit, rank in product(suits, ranks)]
    variant = load_variant(DECLARED["solitaire"], {})
    looked = positions(variant, random.Random(0))
    for _ in range(300):
        state, seat = next(looked)
        drawn = {names[move.action - 1] for move in state.full_history() if move.player < 0}
        words = DECLARED["solitaire"].describe(state, seat).partition("Waste: ")[2].split()
        shown = {word for word in words if word in names}
        tops = words[words.index("Foundations:") + 1 : words.index("Columns:")]
        # Below the top of a foundation lie the lower cards of its suit.
        shown |= {f"{rank}{top[-1]}" for top in tops if len(top) > 1 for rank in ranks[: ranks.index(top[0])]}
        assert shown == drawn and len(drawn) >= 31


@pytest.mark.parametrize("imp_info", [False, True])
def test_a_bid_is_not_told_to_those_who_bid_after_it(imp_info: bool) -> None:
    # Open seats choose one after another, and goofspiel's bids are made at the same time.
    params = {"num_cards": 6, "players": 3, "points_order": "random", "imp_info": imp_info}
    env = make(game="goofspiel", params=params, opponent="open")
    for before in product(range(2), repeat=3):  # each bids its lowest card or its highest in round 1
        seen = set()
        for first, second in product(range(5), repeat=2):
            _, info = env.reset(seed=3)
            for choice in before:
                _, *_, info = env.step(info["legal_actions"][-choice])
            texts = []
            for choice in (first, second):
                text, *_, info = env.step(info["legal_actions"][choice])
                assert info["upstream_reward"] == 0
                texts.append((info["seat"], text, tuple(info["legal_actions"])))
            seen.add(tuple(texts))
        assert len(seen) == 1
