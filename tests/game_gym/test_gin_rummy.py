"""Gin rummy: words against the game, and nothing hidden told."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from game_gym.env import GameSpielEnv
from game_gym.games.gin_rummy import RANKS, SPEC, SUITS, card, describe
from game_gym.prompts import render
from game_gym.spec import Variant, load_variant
from tests.game_gym.gin_rummy_play import (
    KNOCK,
    PASS,
    STOCK,
    UPCARD,
    act,
    choose_melds,
    deal,
    number,
    three_melds_of_three,
)


def value(name: str) -> int:
    return min(RANKS.index(name[0]) + 1, 10)


def melds(hand: list[str]) -> list[set[str]]:
    """Every meld of at most 5 cards, from the words of the rules."""
    found = [
        set(same)
        for rank in RANKS
        for size in (3, 4)
        for same in combinations([name for name in hand if name[0] == rank], size)
    ]
    for suit in SUITS:
        for size in (3, 4, 5):
            runs = [{rank + suit for rank in RANKS[low : low + size]} for low in range(14 - size)]
            found += [run for run in runs if run <= set(hand)]
    return found


def leftovers(hand: set[str], choices: list[set[str]]) -> Iterator[set[str]]:
    """Yields what each choice of disjoint melds leaves of a hand."""
    yield hand
    for index, meld in enumerate(choices):
        if meld <= hand:
            yield from leftovers(hand - meld, choices[index + 1 :])


def shown_deadwood(hand: list[str], discards: bool) -> set[int]:
    """Returns the deadwood that may be shown: OpenSpiel takes any of the melds that leave the least."""
    rests = list(leftovers(set(hand), melds(hand)))
    least = min(sum(map(value, rest)) for rest in rests)
    return {
        least - (max(map(value, rest), default=0) if discards else 0)
        for rest in rests
        if sum(map(value, rest)) == least
    }


def fields(text: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.split("\n"))


def states(variant: Variant, plays: int, seed: int = 0) -> Iterator[Any]:
    """All states of such games in which a player is to move, or that have ended."""
    rng = random.Random(seed)
    for _ in range(plays):
        state = variant.game.new_initial_state()
        while not state.is_terminal():
            if not state.is_chance_node():
                yield state
            state.apply_action(choose_melds(state, rng))
        yield state


@pytest.mark.parametrize("params", [SPEC.params(0), SPEC.params(8), {"oklahoma": True}])
def test_the_rules_told_are_the_rules_played(params: dict[str, Any]) -> None:
    variant = load_variant(SPEC, params)
    knocks = draws = 0
    first = ""  # the upcard that a game starts with
    for state in states(variant, 20):
        if state.is_terminal():
            knocks += any(state.knocked())
            draws += not any(state.knocked())
            assert state.returns()[0] == pytest.approx(result(state))
            continue
        seat = state.current_player()
        told = fields(describe(state, seat))
        hand = told["Your hand"].removeprefix("none").split()
        assert hand == [card(held) for held in sorted(map(number, hand))]
        if told["Turns"] == "none":
            first = told["Upcard"]
        limit = variant.params["knock_card"]
        if variant.params["oklahoma"]:
            limit = value(first) if first[0] != "A" else 0
        assert told["Knock limit"] == str(limit)
        legal, phase = state.legal_actions(), told["Phase"]
        shown = int(told["Your deadwood"])
        full = len(hand) == variant.params["hand_size"] + 1
        if any(state.knocked()):
            assert shown == sum(map(value, hand))
        else:
            assert shown in shown_deadwood(hand, full)
        if phase == "draw":
            assert legal == [UPCARD, STOCK]
        elif phase == "discard" and not any(state.knocked()):
            assert legal == sorted(map(number, hand)) + [KNOCK] * (shown <= limit)
        elif phase == "last upcard":
            least = min(shown_deadwood([*hand, told["Upcard"]], True))
            assert KNOCK in legal if least <= limit else legal == [PASS]
            assert told["Stock"] == "2 cards"
    assert knocks > 3 and draws + knocks == 20


def result(state: Any) -> float:
    """Player 0's return, from what was not laid at the end."""
    if not any(state.knocked()):
        return 0.0
    knocker = state.knocked().index(True)
    left = [sum(value(card(held)) for held in hand) for hand in state.hands()]
    gain = left[1 - knocker] - left[knocker] + 25 * (left[knocker] == 0)
    gain -= 25 * (gain < 0)
    return gain if knocker == 0 else -gain


@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_hidden_is_not_told(seed: int) -> None:
    variant = load_variant(SPEC, SPEC.params(seed))
    rng, changed = random.Random(seed), 0
    for state in states(variant, 8, seed):
        if not state.is_terminal():
            for seat in range(2):
                other = state.resample_from_infostate(seat, rng.random)
                assert describe(other, seat) == describe(state, seat)
                if seat == state.current_player():
                    assert render(variant, other, seat) == render(variant, state, seat)
                changed += other.hands() != state.hands()
    assert changed > 100


def test_the_text_is_the_information_state() -> None:
    variant = load_variant(SPEC, {"hand_size": 7})
    texts: dict[str, str] = {}
    for state in states(variant, 8):
        if not state.is_terminal():
            seat = state.current_player()
            information = f"{seat} {state.information_state_string(seat)}"
            assert texts.setdefault(information, describe(state, seat)) == describe(state, seat)
    assert len(set(texts.values())) == len(texts) > 100


HANDS = ("5s 6s 7s Ac Ad Ah Ks", "8s 9s Ts 4d 6h 9h Kd", "2c")


def test_a_description_in_full() -> None:
    state = deal(load_variant(SPEC, {"hand_size": 7}).game, *HANDS)
    act(state, "Pass", "Draw upcard", "4d", "Draw stock", "3h")
    # Left of 5s6s7s and AcAdAh are Ks and 3h; the dearer one can be discarded. 52 - 15 dealt - 1 drawn.
    assert describe(state, 0) == (
        "Phase: discard\nKnock limit: 10\nYour hand: 5s 6s 7s Ks Ac Ad Ah 3h\nYour deadwood: 3\n"
        "Player 1's known cards: 2c\nUpcard: none\nStock: 36 cards\nOut of play: 4d\n"
        "Turns: you pass, Player 1 ^2c -4d, you +3h"
    )
    assert describe(state, 1).split("\n")[-1] == "Turns: Player 0 pass, you ^2c -4d, Player 0 +?"


def test_a_knock_to_its_end() -> None:
    state = deal(load_variant(SPEC, {"hand_size": 7}).game, *HANDS)
    act(state, "Draw upcard", "Knock")
    assert fields(describe(state, 0))["Phase"] == "discard"
    act(state, "Ks")
    assert fields(describe(state, 0))["Phase"] == "lay melds"
    act(state, "5s6s7s", "AcAdAh", "Pass", "8s", "9s")
    # A run takes two cards an end, so Ts, 4d, 6h, 9h and Kd are left: 10 + 4 + 6 + 9 + 10.
    assert describe(state, 1) == (
        "Phase: lay off\nKnock limit: 10\nYour hand: Ts 4d Kd 6h 9h\nYour deadwood: 39\n"
        "Player 0's known cards: 2c\nUpcard: none\nStock: 37 cards\nOut of play: Ks\n"
        "Turns: Player 0 ^2c knock -Ks\nPlayer 0's melds: 5s6s7s AcAdAh\nYour melds: none\nLaid off: 8s 9s"
    )
    assert state.legal_actions() == [PASS]
    act(state, "Pass")
    assert fields(describe(state, 1))["Phase"] == "lay melds"
    act(state, "Pass")
    assert state.returns() == [37.0, -37.0]  # less the 2 that the knocker kept


def test_taking_back_the_same_card_twice_ends_the_hand() -> None:
    state = deal(load_variant(SPEC, {"hand_size": 7}).game, *HANDS)
    act(state, "Draw upcard", "2c", "Draw upcard")
    assert not state.is_terminal()
    act(state, "2c")
    assert state.is_terminal() and state.returns() == [0.0, 0.0]


def test_fifty_upcards_end_the_hand() -> None:
    state = deal(load_variant(SPEC, {"hand_size": 7}).game, *HANDS)
    act(state, "Draw upcard")
    taken = 0
    while not state.is_terminal():
        # Discard the card held longest, so that nothing is taken straight back.
        state.apply_action(state.hands()[state.current_player()][0])
        state.apply_action(UPCARD)
        taken += 1
    assert taken == 50 and state.returns() == [0.0, 0.0]


def test_task_parameters() -> None:
    assert SPEC.params(0) == SPEC.params(9) == {"hand_size": 7, "knock_card": 10}
    assert SPEC.params(4) == {"hand_size": 8, "knock_card": 9}
    assert SPEC.params(8) == {"hand_size": 9, "knock_card": 8}
    for oklahoma in (False, True):
        rules = load_variant(SPEC, {"hand_size": 10, "oklahoma": oklahoma}).rules
        assert len(rules) < 2000 and ("first upcard (with" in rules) == oklahoma


class Knocker:
    """A bot that knocks, and then has nothing to choose from."""

    def restart(self, seed: int) -> None:
        pass

    def act(self, view: Any) -> int:
        return {view.state.action_to_string(a).split()[-1]: a for a in view.legal_actions()}["Knock"]


@pytest.mark.parametrize("seat", [0, 1])
def test_a_game_left_without_a_move_is_a_fault(seat: int) -> None:
    """Nine cards that are three melds of three: after the knock, no discard keeps the deadwood at 0.

    OpenSpiel then has no legal action and no end, whether the knock was the agent's (seat 0) or the bot's.
    """
    env = GameSpielEnv(game="gin_rummy", params={"hand_size": 8, "knock_card": 10}, opponent="first")
    env.reset(seed=seat)  # the seat is the seed's, modulo 2
    backend: Any = env._backend
    state = three_melds_of_three(env.variant.game)
    backend.state = state
    for view in backend._match.views:
        view.state = state
    if seat == 0:
        env._turn = backend._next_turn()
        knock = Knocker().act(backend._match.views[0])
        _, reward, terminated, truncated, info = env.step(knock)
        assert (reward, terminated, truncated) == (0.0, False, True)
        assert (info["result"], info["score"], info["success"]) == ("fault", None, False)
        assert info["legal_actions"] == [] and not info["action_mask"].any()
        assert info["fault"] == "OpenSpiel left 'gin_rummy' without a legal action for player 0"
    else:
        backend._match.bots[0] = Knocker()
        ending = backend._next_turn().ending
        assert (ending.result, ending.score) == ("fault", None)


def test_a_search_that_meets_such_a_state_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSpiel's C++ search tries the knock and reads beyond an empty list, which ends its own process."""
    env = GameSpielEnv(game="gin_rummy", params={"hand_size": 8, "knock_card": 10}, opponent="mcts:40x2")
    backend: Any = env._backend
    begin = backend._begin

    def begin_before_the_knock(*address: Any) -> None:
        begin(*address)
        backend.state = three_melds_of_three(env.variant.game)
        for view in backend._match.views:
            view.state = backend.state

    with monkeypatch.context() as patch:
        patch.setattr(backend, "_begin", begin_before_the_knock)
        _, info = env.reset(seed=1)  # the search plays seat 0
    assert (info["result"], info["score"], info["legal_actions"]) == ("fault", None, [])
    assert "the search make_bot ended its process twice" in info["fault"]
    assert "allowed there: 'mcts-python' and 'ismcts', which go on" in info["fault"]
    _, info = env.reset(seed=1)  # the next episode is played
    assert "result" not in info and env.step(info["legal_actions"][0])[4]["turn"] == 1


def test_only_hands_of_eight_may_be_left_without_a_move() -> None:
    """Threes alone meld every card of a hand and the one drawn: their number is a multiple of three."""
    sizes = [size for size in SPEC.allowed["hand_size"] if SPEC.may_strand({"hand_size": size})]
    assert sizes == [size for size in SPEC.allowed["hand_size"] if (size + 1) % 3 == 0] == [8]
