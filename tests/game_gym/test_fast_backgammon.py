"""Backgammon's compiled rules beside OpenSpiel's."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyspiel
import pytest

pytest.importorskip("numba")

from game_gym.opponents.fast import backgammon
from tests.game_gym.fast_rules import check_draws, check_game

pytestmark = pytest.mark.numba

FULL = pyspiel.load_game("backgammon", {"scoring_type": "full_scoring"})
GAMMONS = pyspiel.load_game("backgammon", {"scoring_type": "enable_gammons"})
PLAIN = pyspiel.load_game("backgammon")
SEEDS = range(18)
PASS, BAR, LOW_FIRST = 1351, 24, 676


def walk(game: Any, seed: int) -> Iterator[pyspiel.State]:
    """Yields the states of the game that ``check_game`` plays."""
    generator, state = random.Random(seed), game.new_initial_state()
    yield state
    while not state.is_terminal():
        state.apply_action(generator.choice(state.legal_actions()))
        yield state


def find(condition: Callable[[pyspiel.State], bool], game: Any = FULL) -> pyspiel.State:
    """Returns the first such state of the random games."""
    for seed in SEEDS:
        for state in walk(game, seed):
            if condition(state):
                return state
    raise AssertionError("there is no such state")


def dice(state: pyspiel.State) -> str:
    return str(state.to_string().split("Dice: ")[1].split("\n")[0])


def is_again(state: pyspiel.State) -> bool:
    return "Extra turn: 1" in state.to_string()


def count_bar(state: pyspiel.State, seat: int) -> int:
    return int(backgammon.read(state)[25 * seat + BAR])


def moves_one(state: pyspiel.State) -> bool:
    """Tells whether a seat can move one checker only."""
    legal = state.legal_actions()
    return state.current_player() >= 0 and legal != [PASS] and legal[0] % 676 // 26 == 25


def farthest(state: pyspiel.State) -> int:
    """Returns the place of the mover's farthest checker."""
    seat = state.current_player()
    checkers = backgammon.read(state)[25 * seat : 25 * seat + 25]
    return int(np.flatnonzero(checkers)[-1])


SITUATIONS: dict[str, Callable[[pyspiel.State], bool]] = {
    "no checker can move": lambda state: state.legal_actions() == [PASS],
    "only the higher die": lambda state: moves_one(state) and state.legal_actions()[0] < LOW_FIRST,
    "only the lower die": lambda state: moves_one(state) and state.legal_actions()[0] >= LOW_FIRST,
    "only one half of a double": lambda state: moves_one(state) and len(set(dice(state))) == 1,
    "two on the bar": lambda state: (
        state.current_player() >= 0 and count_bar(state, state.current_player()) > 1
    ),
    "a die is higher than needed": lambda state: (
        state.current_player() >= 0 and farthest(state) + 1 < int(dice(state)[1])
    ),
    "bearing off in the second half": lambda state: (
        state.current_player() >= 0 and is_again(state) and farthest(state) < 6
    ),
    "an end in the first half": lambda state: state.is_terminal() and is_again(state),
    **{
        f"return {value}": lambda state, value=value: state.is_terminal() and state.returns()[0] == value
        for value in (-3.0, -2.0, -1.0, 1.0, 2.0, 3.0)
    },
}


@pytest.mark.parametrize("seed", SEEDS)
def test_random_games_are_openspiels(seed: int) -> None:
    assert check_game(backgammon, FULL, seed) > 50


@pytest.mark.parametrize("name", SITUATIONS)
def test_the_random_games_have_each_situation(name: str) -> None:
    assert SITUATIONS[name](find(SITUATIONS[name]))


@pytest.mark.parametrize(("game", "value"), [(PLAIN, 1.0), (GAMMONS, 2.0)])
def test_a_backgammon_is_worth_what_the_scoring_says(game: Any, value: float) -> None:
    seed = next(seed for seed in SEEDS if [*walk(FULL, seed)][-1].returns()[0] == 3.0)
    assert [*walk(game, seed)][-1].returns()[0] == value
    check_game(backgammon, game, seed)
    assert backgammon.utility(backgammon.read(game.new_initial_state())) == value == game.max_utility()
    assert backgammon.utility(backgammon.read(FULL.new_initial_state())) == 3.0 == FULL.max_utility()


@pytest.mark.parametrize("most", [0, 3, 20])
def test_a_game_ends_with_its_last_turn(most: int) -> None:
    game = pyspiel.load_game("backgammon", {"max_player_turns": most})
    in_half = 0
    for seed in range(12):
        check_game(backgammon, game, seed)
        *_, last = walk(game, seed)
        assert last.returns() == [0.0, 0.0]
        assert sum(move.player >= 0 for move in last.full_history()) >= most + 1
        in_half += is_again(last)
    assert in_half > 0 or most == 0  # the first roll is no double


def test_draws_are_uniform() -> None:
    check_draws(backgammon, FULL.new_initial_state(), 8000)
    check_draws(backgammon, FULL.new_initial_state().child(7), 8000)
    check_draws(backgammon, find(lambda state: state.is_chance_node() and state.move_number() > 0), 8000)
    for name, condition in SITUATIONS.items():
        if "end" not in name and "return" not in name:
            check_draws(
                backgammon,
                find(lambda state, condition=condition: not state.is_terminal() and condition(state)),
            )


def test_draws_are_uniform_in_the_middle() -> None:
    """Few checkers are outside the home, or many actions are legal."""
    for places in (1, 2, 3):
        check_draws(
            backgammon,
            find(lambda state, places=places: state.current_player() >= 0 and count_outside(state) == places),
        )
    check_draws(
        backgammon,
        find(lambda state: state.current_player() >= 0 and len(state.legal_actions()) > 120),
        40000,
    )


def count_outside(state: pyspiel.State) -> int:
    """Returns how many of the mover's checkers are not at home."""
    seat = state.current_player()
    return int(backgammon.read(state)[25 * seat + 6 : 25 * seat + 25].sum())


def test_hyper_backgammon_is_refused() -> None:
    game = pyspiel.load_game("backgammon", {"hyper_backgammon": True})
    with pytest.raises(ValueError, match="hyper_backgammon"):
        backgammon.read(game.new_initial_state())
