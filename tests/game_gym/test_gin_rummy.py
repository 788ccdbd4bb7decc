"""Gin rummy: words against the game, and nothing hidden told."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from game_gym.env import GameSpielEnv
from game_gym.games.gin_rummy import SPEC, card, describe
from game_gym.prompts import render
from game_gym.spec import Variant, load_variant
from tests.game_gym.gin_rummy_play import HANDS, KNOCK, PASS, act, choose_melds, deal, three_melds_of_three
from tests.game_gym.play import Fixed, turns


def fields(text: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.split("\n"))


def states(variant: Variant, plays: int, seed: int = 0) -> Iterator[Any]:
    """The states of such games in which a player is to move."""
    rng = random.Random(seed)
    return turns(variant.game, plays, lambda state, _: choose_melds(state, rng))


@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_hidden_is_not_told(seed: int) -> None:
    variant = load_variant(SPEC, SPEC.params(seed))
    rng, changed = random.Random(seed), 0
    for state in states(variant, 8, seed):
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
        seat = state.current_player()
        information = f"{seat} {state.information_state_string(seat)}"
        assert texts.setdefault(information, describe(state, seat)) == describe(state, seat)
    assert len(set(texts.values())) == len(texts) > 100
    phases = {fields(text)["Phase"] for text in texts.values()}
    assert phases == {"first upcard", "draw", "discard", "lay melds", "lay off"}


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


def test_a_knock_with_the_last_upcard() -> None:
    state = deal(load_variant(SPEC, {"hand_size": 7}).game, HANDS[1], HANDS[0], HANDS[2])
    act(state, "Pass", "Pass")
    while state.stock_size() > 2:  # each draws a card and discards it
        act(state, "Draw stock")
        drawn = card(state.legal_actions()[0])
        act(state, drawn, drawn)
    told = fields(describe(state, 1))
    assert (told["Phase"], told["Upcard"], told["Stock"]) == ("last upcard", drawn, "2 cards")
    assert state.legal_actions() == [PASS, KNOCK]
    act(state, "Knock")
    assert fields(describe(state, 1))["Turns"].endswith(f", Player 0 +? -{drawn}, you ^{drawn} knock")


class Knocker(Fixed):
    """A bot that knocks, and then has nothing to choose from."""

    def act(self, view: Any) -> int:
        return {view.state.action_to_string(a).split()[-1]: a for a in view.legal_actions()}["Knock"]


class Blind(Fixed):
    """A bot that knocks time and again, and never asks what is legal."""

    answer = KNOCK


@pytest.mark.parametrize(("seat", "bot"), [(0, None), (1, Knocker(None)), (1, Blind(None))])
def test_a_game_left_without_a_move_is_a_fault(seat: int, bot: Any) -> None:
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
        knock = Knocker(None).act(backend._match.views[0])
        _, reward, terminated, truncated, info = env.step(knock)
        assert (reward, terminated, truncated) == (0.0, False, True)
        assert (info["result"], info["score"], info["success"]) == ("fault", None, False)
        assert info["legal_actions"] == [] and not info["action_mask"].any()
        assert info["fault"] == "OpenSpiel left 'gin_rummy' without a legal action for player 0"
    else:
        backend._match.bots[0] = bot
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
