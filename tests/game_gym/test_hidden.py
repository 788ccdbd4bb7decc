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
from tests.game_gym.test_games import HIDING

# Other states that a seat cannot tell from a given one, in two ways. Each takes (state, seat, rng) where
# the seat is to move, and returns a state of the same game, or None if it found none.

State = Any
Resampler = Callable[[State, int, random.Random], State | None]

#: Exchanges tried by ``exchanged``.
EXCHANGES = 6


def openspiel(state: State, seat: int, rng: random.Random) -> State:
    """OpenSpiel's own, for the games that have it (it prints and raises in the others).

    In gin_rummy it changes the hands and leaves the history as it was, in euchre the dealer's discard.
    """
    return state.resample_from_infostate(seat, rng.random)


def exchanged(state: State, seat: int, rng: random.Random) -> State | None:
    """Two cards change places throughout the history, time and again: for games where chance deals cards.

    The seat's own moves stay. An exchange holds if what the seat knew at each of its decisions, and what it
    could do, stays too.
    """
    game = state.get_game()
    cards = range(game.max_chance_outcomes())
    moves = [(move.player, move.action) for move in state.full_history()]
    known = _memories(state, seat)
    sample = None
    for _ in range(EXCHANGES):
        one, two = rng.sample(cards, 2)
        swap = {one: two, two: one}
        others = [(who, action if who == seat else swap.get(action, action)) for who, action in moves]
        other = _unnoticed(game, others, seat, known) if others != moves else None
        if other is not None:
            moves, sample = others, other
    return sample


def _memories(state: State, seat: int) -> list[tuple[str, list[int]]]:
    """The seat's knowledge and choices at each decision on the way to a state, the last included."""
    other, memories = state.get_game().new_initial_state(), []
    for action in state.history():
        if other.current_player() == seat:
            memories.append(_memory(other, seat))
        other.apply_action(action)
    return [*memories, _memory(state, seat)]


def _memory(state: State, seat: int) -> tuple[str, list[int]]:
    return state.information_state_string(seat), state.legal_actions(seat)


def _unnoticed(
    game: Any, moves: list[tuple[int, int]], seat: int, known: list[tuple[str, list[int]]]
) -> State | None:
    """The state after a history of (player, action); None if it is not legal or the seat notices."""
    state, left = game.new_initial_state(), iter(known)
    for player, action in moves:
        if player != state.current_player() or action not in state.legal_actions():
            return None
        if player == seat and _memory(state, seat) != next(left):
            return None
        state.apply_action(action)
    return state if state.current_player() == seat and _memory(state, seat) == next(left) else None


TYPE = pyspiel.GameType

#: The way to draw again the hidden part of each game that has one and is not small: in small ones random play
#: meets states that look alike (``test_games``). OpenSpiel's way alone would miss a leak of what it leaves as
#: it was: cards drawn by the other in gin_rummy, the dealer's discard in euchre.
WAYS: dict[str, tuple[Resampler, ...]] = {
    "blackjack": (openspiel, exchanged),
    "bridge": (openspiel,),
    "gin_rummy": (openspiel, exchanged),
    "hearts": (openspiel, exchanged),
    "euchre": (openspiel, exchanged),
}

#: Counted among the games of imperfect information by OpenSpiel, as face-down cards are unknown. They are not
#: drawn before they are turned up, so that nothing is there to be told.
NOTHING_DRAWN_AHEAD = "solitaire"

#: The first variant is in `make test`, and where it is dear in no quicker loop.
MARKS: dict[tuple[str, int], Any] = {(name, 0): [] for name in WAYS}
MARKS["bridge", 0] = [pytest.mark.families, pytest.mark.sample]

CASES = [
    pytest.param(
        name, DECLARED[name].params(config), way, marks=MARKS.get((name, config), pytest.mark.families)
    )
    for name, ways in WAYS.items()
    for config in range(DECLARED[name].variants)
    for way in ways
] + [pytest.param("gin_rummy", {"oklahoma": True}, exchanged)]


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


def test_every_game_that_hides_something_is_looked_at() -> None:
    hiding = set()
    for name, spec in DECLARED.items():
        for config in range(spec.variants):
            kind = load_variant(spec, spec.params(config)).game.get_type()
            # If all is open, chance is drawn when it happens, so that nothing waits to be shown.
            assert kind.chance_mode in (TYPE.ChanceMode.DETERMINISTIC, TYPE.ChanceMode.EXPLICIT_STOCHASTIC)
            if kind.information != TYPE.Information.PERFECT_INFORMATION:
                hiding.add(name)
    assert hiding == {*WAYS, NOTHING_DRAWN_AHEAD, *(name for name, _ in HIDING)} - {"goofspiel"}


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
