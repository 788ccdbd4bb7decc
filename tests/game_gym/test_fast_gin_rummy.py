"""Gin rummy's compiled rules beside OpenSpiel's."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyspiel
import pytest

pytest.importorskip("numba")

from game_gym.games.gin_rummy import SPEC
from game_gym.opponents.fast import gin_rummy
from game_gym.opponents.fast.noise import make_noise
from game_gym.opponents.fast.rules import ENDED, list_legal
from game_gym.opponents.fast.tree import load_search
from game_gym.spec import load_variant
from tests.game_gym.fast_rules import check_draws, check_game
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

UTILS = pyspiel.gin_rummy.GinRummyUtils(13, 4, 10)
MELDS = 56


def load(**params: Any) -> Any:
    return load_variant(SPEC, params).game


def word(cards: Any) -> int:
    return sum(1 << int(card) for card in cards)


def hand(names: str) -> list[int]:
    return [number(name) for name in names.split()]


# -- whole games ---------------------------------------------------------------------------------------------


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


def walk(game: Any, seed: int) -> list[Any]:
    """Returns the states of a game that ``check_game`` plays."""
    generator, state = random.Random(seed), game.new_initial_state()
    found = [state.clone()]
    while not state.is_terminal():
        state.apply_action(choose_melds(state, generator))
        found.append(state.clone())
    return found


SITUATIONS: dict[str, Callable[[Any], bool]] = {
    "gin": lambda end: any(end.knocked()) and end.deadwood()[int(end.knocked()[1])] == 0,
    "cards laid off": lambda end: bool(end.layoffs()),
    "two melds of one hand": lambda end: max(map(len, end.layed_melds())) > 1,
    "melds of both": lambda end: min(map(len, end.layed_melds())) > 0,
    "a knock at the wall": lambda end: any(end.knocked()) and end.stock_size() == 2,
    "a pass at the wall": lambda end: not any(end.knocked()) and end.stock_size() == 2,
    "an upcard drawn and laid down twice": lambda end: not any(end.knocked()) and end.stock_size() > 2,
}


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_games_have_each_situation(name: str) -> None:
    games = (walk(load(**params), seed)[-1] for params in PLAYED.values() for seed in range(20))
    assert any(SITUATIONS[name](end) for end in games)


# -- hands ---------------------------------------------------------------------------------------------------


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


def test_eleven_cards_have_at_most_24_melds() -> None:
    """Of one suit in a row: nine runs of three, eight of four, seven of five."""
    melds = np.empty(24, dtype=np.int64)
    assert gin_rummy._list_groupable(word(range(11)), melds) == 24
    assert sorted(melds.tolist()) == sorted(word(meld) for meld in UTILS.all_melds(list(range(11))))


def test_the_first_of_equal_groups_decides_what_is_left_to_discard() -> None:
    """Three sixes are worth 18 points, and so is the run that needs one of them.

    OpenSpiel lists sets before runs, so it melds the sixes. The five and the seven are left.
    """
    eleven = hand("5s 6s 7s 6c 6d Ac 2d 3h As 2c 9h")
    assert UTILS.total_card_value(hand("5s 6s 7s")) == UTILS.total_card_value(hand("6s 6c 6d")) == 18
    # 5 + 7 + 1 + 2 + 3 + 1 + 2 + 9 points are left. The nine may be discarded, which leaves 21.
    assert gin_rummy._find_left(word(eleven)) == word(hand("5s 7s Ac 2d 3h As 2c 9h"))
    assert gin_rummy._find_deadwood(word(eleven)) == UTILS.min_deadwood(eleven) == 21


def test_points_of_cards() -> None:
    assert gin_rummy._value(word(hand("As 2c 9d Th Js Qc Kd"))) == 1 + 2 + 9 + 40
    assert [gin_rummy._highest(word([card])) for card in range(13)] == [
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        9,
        10,
        10,
        10,
        10,
    ]


@pytest.mark.parametrize(
    ("melds", "laid_off", "cards"),
    [
        (["5s 6s 7s"], "", "4s 8s"),
        (["As 2s 3s"], "", "4s"),
        (["Jh Qh Kh"], "", "Th"),
        (["Kc Kd Kh"], "", "Ks"),
        (["Ks Kc Kd Kh"], "", ""),
        (["5s 6s 7s", "Ac Ad Ah"], "", "4s 8s As"),
        (["5s 6s 7s"], "8s", "4s 9s"),
        (["5s 6s 7s"], "4s 8s", "3s 9s"),
        (["5s 6s 7s"], "8s 9s", "4s 9s"),  # as in OpenSpiel, a third card does not count
        (["Ts Js Qs"], "Ks", "9s"),  # no card of the next suit
    ],
)
def test_cards_that_can_be_laid_off(melds: list[str], laid_off: str, cards: str) -> None:
    numbers = [UTILS.meld_to_int(hand(meld)) for meld in melds]
    expected = [card for card in hand(cards) if card not in hand(laid_off)]
    digits = sum((meld + 1) * 256**place for place, meld in enumerate(numbers))
    found = gin_rummy._find_layoffs(digits, word(hand(laid_off))) & ~word(hand(laid_off))
    assert found == word(expected)
    theirs = set(UTILS.all_layoffs(numbers, hand(laid_off))) - set(hand(laid_off))
    assert theirs == set(expected)


# -- the moves of a game -------------------------------------------------------------------------------------

SEVEN = ("5s 6s 7s Ac Ad Ah Ks", "8s 9s Ts 4d 6h 9h Kd", "2c")


def follow(state: Any) -> tuple[list[int], int]:
    """Returns the compiled legal actions and player of a state, which are OpenSpiel's."""
    compiled = gin_rummy.read(state)
    legal = list_legal(gin_rummy, compiled)
    assert legal == state.legal_actions() and gin_rummy.player(compiled) == state.current_player()
    return legal, int(gin_rummy.player(compiled))


def test_the_first_upcard_is_offered_to_both() -> None:
    state = deal(load(hand_size=7), *SEVEN)
    assert follow(state) == ([UPCARD, PASS], 0)
    act(state, "Pass")
    assert follow(state) == ([UPCARD, PASS], 1)
    act(state, "Pass")
    assert follow(state) == ([STOCK], 0)
    act(state, "Draw stock")
    legal, player = follow(state)
    assert player == pyspiel.PlayerId.CHANCE and len(legal) == 52 - 15


def test_a_run_grows_by_what_is_laid_off() -> None:
    state = deal(load(hand_size=7), *SEVEN)
    act(state, "Draw upcard", "Knock", "Ks", "5s6s7s", "AcAdAh", "Pass")
    assert follow(state) == ([number("8s"), PASS], 1)
    act(state, "8s")
    assert follow(state) == ([number("9s"), PASS], 1)
    act(state, "9s")
    assert follow(state) == ([PASS], 1)  # not the ten


def test_nothing_is_laid_off_on_gin() -> None:
    state = deal(load(hand_size=7), "5s 6s 7s Ac Ad Ah As", *SEVEN[1:])
    act(state, "Draw upcard", "Knock", "2c", "5s6s7s", "AsAcAdAh", "Pass")
    legal, player = follow(state)
    assert player == 1 and number("8s") not in legal and legal[0] == PASS
    act(state, "8s9sTs", "Pass")
    compiled = gin_rummy.read(state)
    # 4 + 6 + 9 + 10 are left, and gin pays 25.
    assert gin_rummy.player(compiled) == ENDED and gin_rummy.result(compiled) == 29 + 25 == state.returns()[0]


def test_an_undercut_pays_the_other() -> None:
    state = deal(load(hand_size=7), "5s 6s 7s Ac Ad Ah Ts", "8d 9d Td Jd 3c 3d 4h", "2c")
    act(state, "Draw upcard", "Knock", "2c", "5s6s7s", "AcAdAh", "Pass", "Pass", "8d9dTdJd", "Pass")
    # The knock leaves ten. The other's 3 + 3 + 4 are as many, which is none yet.
    assert gin_rummy.result(gin_rummy.read(state)) == state.returns()[0] == 0.0
    state = deal(load(hand_size=7), "5s 6s 7s Ac Ad Ah Ts", "8d 9d Td Jd 3c 3d 3h", "2c")
    act(state, "Draw upcard", "Knock", "2c", "5s6s7s", "AcAdAh", "Pass", "Pass", "8d9dTdJd", "3c3d3h", "Pass")
    assert gin_rummy.result(gin_rummy.read(state)) == state.returns()[0] == -10 - 25


def test_oklahoma_plays_for_gin_after_an_ace() -> None:
    game = load(hand_size=7, oklahoma=True)
    knock = {
        name: gin_rummy.read(deal(game, *SEVEN[:2], name))[gin_rummy._KNOCK] for name in ("2c", "Qc", "As")
    }
    assert knock == {"2c": 2, "Qc": 10, "As": 0}


def test_a_hand_left_without_a_discard_ends_without_a_result() -> None:
    """OpenSpiel knows no legal action there, and no end; its own search ends the process."""
    state = three_melds_of_three(load(hand_size=8, knock_card=10))
    assert KNOCK in follow(state)[0]
    compiled = gin_rummy.read(state)
    gin_rummy.apply(compiled, KNOCK)
    state.apply_action(KNOCK)
    assert state.legal_actions() == [] and not state.is_terminal()
    assert gin_rummy.player(compiled) == ENDED and gin_rummy.result(compiled) == state.returns()[0] == 0.0
    assert np.array_equal(compiled, gin_rummy.read(state))


def test_a_search_goes_on_where_a_knock_strands_it() -> None:
    state = three_melds_of_three(load(hand_size=8, knock_card=10))
    rules, search = load_search("gin_rummy")
    assert search(rules.read(state), 60, 2, 1.414, make_noise(1)) in state.legal_actions()


def test_the_fiftieth_upcard_that_is_drawn_ends_the_game() -> None:
    """Both take the upcard and lay down another card each time, so that no discard is repeated."""
    state = deal(load(hand_size=7), "As 3c 5d 7h 9s Jc Kd", "Ac 3d 5h 7s 9c Jd Kh", "2s")
    compiled = gin_rummy.read(state)
    moves = []
    while not state.is_terminal():
        legal = follow(state)[0]
        # The lowest card that was not taken just now, so that the others take turns.
        taken = state.prev_upcard()
        moves.append(UPCARD if UPCARD in legal else next(card for card in legal if card != taken))
        state.apply_action(moves[-1])
        gin_rummy.apply(compiled, moves[-1])
    # The first upcard does not count.
    assert moves.count(UPCARD) == 51 and moves[-1] == UPCARD
    assert gin_rummy.player(compiled) == ENDED and gin_rummy.result(compiled) == 0.0


def test_no_return_is_greater_than_the_utility() -> None:
    for bonus in (20, 25):
        game = load(hand_size=7, gin_bonus=bonus)
        compiled = gin_rummy.read(game.new_initial_state())
        assert gin_rummy.utility(compiled) == game.max_utility() == 98 + bonus


# -- draws ---------------------------------------------------------------------------------------------------


def test_draws_are_uniform() -> None:
    state = deal(load(hand_size=7), *SEVEN)
    check_draws(gin_rummy, state)
    act(state, "Draw upcard")
    check_draws(gin_rummy, state)  # a discard, or the knock
    act(state, "Ks")
    check_draws(gin_rummy, state)
    act(state, "Draw stock")
    check_draws(gin_rummy, state, 8000)  # chance


def test_draws_after_a_knock_are_uniform() -> None:
    state = deal(load(hand_size=7), *SEVEN)
    act(state, "Draw upcard", "Knock")
    for name in ("Ks", "5s6s7s", "AcAdAh", "Pass", "Pass", "8s9sTs"):
        check_draws(gin_rummy, state, 1000)
        act(state, name)


@pytest.mark.parametrize("params", [{"num_ranks": 12}, {"num_suits": 3}])
def test_uncovered_parameters_are_refused(params: dict[str, int]) -> None:
    with pytest.raises(
        ValueError, match=r"gin_rummy: compiled rules are for 13 ranks of 4 suits, not 1?[23] of"
    ):
        gin_rummy.read(pyspiel.load_game("gin_rummy", params).new_initial_state())
