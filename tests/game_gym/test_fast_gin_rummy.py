"""Gin rummy's compiled rules beside OpenSpiel's."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyspiel
import pytest

pytest.importorskip("numba")

from game_gym.games.gin_rummy import SPEC
from game_gym.opponents.fast import gin_rummy
from game_gym.opponents.fast.rules import ENDED, make_noise
from game_gym.opponents.fast.tree import load_search
from game_gym.spec import load_variant
from tests.game_gym.fast_rules import check_draws, check_game, compare
from tests.game_gym.gin_rummy_play import HANDS, KNOCK, act, choose_melds, deal, three_melds_of_three

pytestmark = pytest.mark.numba

UTILS = pyspiel.gin_rummy.GinRummyUtils(13, 4, 10)
MELDS = 56


def load(**params: Any) -> Any:
    return load_variant(SPEC, params).game


def word(cards: Any) -> int:
    return sum(1 << int(card) for card in cards)


@pytest.mark.parametrize("config", range(9))
def test_random_games_of_every_variant_are_the_same(config: int) -> None:
    for seed in range(4):
        assert check_game(gin_rummy, load(**SPEC.params(config)), seed) >= 20


PLAYED = {
    "hands of seven": {"hand_size": 7},
    "hands of nine": {"hand_size": 9, "knock_card": 9},
    "hands of ten": {"hand_size": 10},
    "oklahoma": {"oklahoma": True, "hand_size": 7},
    "other bonuses": {"gin_bonus": 20, "undercut_bonus": 20, "hand_size": 7},
}


@pytest.mark.parametrize("name", PLAYED)
def test_games_that_end_with_a_knock_are_the_same(name: str) -> None:
    game = load(**PLAYED[name])
    for seed in range(20):
        check_game(gin_rummy, game, seed, choose_melds)


@pytest.mark.parametrize("suits", [1, 2, 3, 4])
def test_melds_deadwood_and_discards_are_openspiels(suits: int) -> None:
    """Hands out of few ranks, of which many groups are worth the same."""
    generator = random.Random(suits)
    for _ in range(150):
        ranks = generator.randrange(-(-11 // suits), min(13, 20 // suits + 2) + 1)
        low = generator.randrange(14 - ranks)
        cards = [13 * suit + low + rank for suit in range(suits) for rank in range(ranks)]
        eleven = generator.sample(cards, 11)
        assert gin_rummy._find_deadwood(word(eleven)) == UTILS.min_deadwood(eleven)
        ten = eleven[:10]
        left = word(ten) & ~gin_rummy._choose_group(word(ten))
        assert gin_rummy._value(left) == UTILS.min_deadwood(ten)
        for most in (0, 5, 10):
            discards = gin_rummy._find_discards(word(eleven), most)
            assert discards == word(UTILS.legal_discards(eleven, most))
            assert melds_to_lay(ten, most) == UTILS.legal_melds(ten, most)
        assert melds_to_lay(ten, 98) == UTILS.legal_melds(ten, 98)


def melds_to_lay(cards: list[int], most: int) -> list[int]:
    actions = np.zeros(gin_rummy.ACTIONS, dtype=np.int32)
    count = gin_rummy._list_melds_to_lay(word(cards), most, actions, 0)
    return [int(action) - MELDS for action in actions[:count]]


def test_an_undercut_pays_the_other() -> None:
    state = deal(load(hand_size=7), "5s 6s 7s Ac Ad Ah Ts", "8d 9d Td Jd 3c 3d 4h", "2c")
    act(state, "Draw upcard", "Knock", "2c", "5s6s7s", "AcAdAh", "Pass", "Pass", "8d9dTdJd", "Pass")
    # The knock leaves ten. The other's 3 + 3 + 4 are as many, which is none yet.
    assert gin_rummy.result(gin_rummy.read(state)) == state.returns()[0] == 0.0
    state = deal(load(hand_size=7), "5s 6s 7s Ac Ad Ah Ts", "8d 9d Td Jd 3c 3d 3h", "2c")
    act(state, "Draw upcard", "Knock", "2c", "5s6s7s", "AcAdAh", "Pass", "Pass", "8d9dTdJd", "3c3d3h", "Pass")
    assert gin_rummy.result(gin_rummy.read(state)) == state.returns()[0] == -10 - 25


def test_a_search_goes_on_where_a_hand_is_left_without_a_discard() -> None:
    """OpenSpiel knows no legal action there, and no end; its own search ends the process."""
    state = three_melds_of_three(load(hand_size=8, knock_card=10))
    compiled = gin_rummy.read(state)
    compare(gin_rummy, compiled, state)
    assert KNOCK in state.legal_actions()
    _, search = load_search("gin_rummy")
    assert search(compiled.copy(), 60, 2, 1.414, make_noise(1)) in state.legal_actions()
    gin_rummy.apply(compiled, KNOCK)
    state.apply_action(KNOCK)
    assert state.legal_actions() == [] and not state.is_terminal()
    assert compiled[gin_rummy.PLAYER] == ENDED and gin_rummy.result(compiled) == state.returns()[0] == 0.0
    assert np.array_equal(compiled, gin_rummy.read(state))


def test_no_return_is_greater_than_the_utility() -> None:
    for bonus in (20, 25):
        game = load(hand_size=7, gin_bonus=bonus)
        compiled = gin_rummy.read(game.new_initial_state())
        assert gin_rummy.utility(compiled) == game.max_utility() == 98 + bonus


def test_draws_are_uniform() -> None:
    state = deal(load(hand_size=7), *HANDS)
    check_draws(gin_rummy, state)
    act(state, "Draw upcard")
    check_draws(gin_rummy, state)  # a discard, or the knock
    act(state, "Ks")
    check_draws(gin_rummy, state)
    act(state, "Draw stock")
    check_draws(gin_rummy, state, 8000)  # chance
    state = deal(load(hand_size=7), *HANDS)
    act(state, "Draw upcard", "Knock")
    for name in ("Ks", "5s6s7s", "AcAdAh", "Pass", "Pass", "8s9sTs"):
        check_draws(gin_rummy, state, 1000)
        act(state, name)
