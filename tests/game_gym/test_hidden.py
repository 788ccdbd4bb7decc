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

# Other states that a seat cannot tell from a given one, in three ways. Each takes (state, seat, rng) where
# the seat is to move, and returns a state of the same game, or None if it found none.

State = Any
Resampler = Callable[[State, int, random.Random], State | None]

#: Exchanges tried by ``exchanged``.
EXCHANGES = 6

#: States visited by ``redrawn`` before it gives up.
VISITS = 3000


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
    found = None
    for _ in range(EXCHANGES):
        one, two = rng.sample(cards, 2)
        swap = {one: two, two: one}
        others = [(who, action if who == seat else swap.get(action, action)) for who, action in moves]
        other = _unnoticed(game, others, seat, known) if others != moves else None
        if other is not None:
            moves, found = others, other
    return found


def redrawn(state: State, seat: int, rng: random.Random) -> State | None:
    """Chance and the other seats draw again, in a random search over histories: for small games.

    The seat's moves stay, and so does all that it gets to know, in the same order. The others may move more
    or less often, where the seat does not notice.
    """
    known, own = _learnt(state, seat)
    visits = 0

    def search(other: State, seen: int, moved: int) -> State | None:
        """From ``other``, where the seat knows ``known[seen]`` and has made ``moved`` moves."""
        nonlocal visits
        visits += 1
        asked = _is_asked(other, seat)
        if asked and moved == len(own):
            return other if seen == len(known) - 1 else None
        if other.is_terminal() or visits > VISITS:
            return None
        branches = _branches(other, seat, own[moved]) if asked else [[a] for a in other.legal_actions()]
        rng.shuffle(branches)
        for branch in branches:
            child = other.clone()
            _apply(child, branch)
            knows = child.information_state_string(seat)
            for now in (seen, seen + 1):
                if now < len(known) and knows == known[now]:
                    found = search(child, now, moved + asked)
                    if found is not None:
                        return found
        return None

    return search(state.get_game().new_initial_state(), 0, 0)


def _learnt(state: State, seat: int) -> tuple[list[str], list[int]]:
    """The seat's knowledge on the way to a state, without repeats, and the moves it made."""
    game = state.get_game()
    other = game.new_initial_state()
    known, own = [other.information_state_string(seat)], []
    history = state.history()
    while history:
        count = game.num_players() if other.is_simultaneous_node() else 1
        joint, history = history[:count], history[count:]
        if _is_asked(other, seat):
            own.append(joint[seat if count > 1 else 0])
        _apply(other, joint)
        knows = other.information_state_string(seat)
        if knows != known[-1]:
            known.append(knows)
    return known, own


def _is_asked(state: State, seat: int) -> bool:
    return state.is_simultaneous_node() or state.current_player() == seat


def _branches(state: State, seat: int, own: int) -> list[list[int]]:
    """The moves from a turn of the seat, whose own move is given."""
    if not state.is_simultaneous_node():
        return [[own]]
    players = range(state.get_game().num_players())
    return [
        list(joint) for joint in product(*([own] if p == seat else state.legal_actions(p) for p in players))
    ]


def _apply(state: State, moves: list[int]) -> None:
    if state.is_simultaneous_node():
        state.apply_actions(moves)
    else:
        state.apply_action(moves[0])


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
