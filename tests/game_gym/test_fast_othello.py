"""Othello's compiled rules beside OpenSpiel's."""

from __future__ import annotations

import pyspiel
import pytest

pytest.importorskip("numba")

from game_gym.opponents.fast import othello
from game_gym.opponents.fast.rules import ENDED, list_legal
from tests.game_gym.fast_rules import check_draws, check_game

pytestmark = pytest.mark.numba

GAME = pyspiel.load_game("othello")


def position(actions: list[int]) -> pyspiel.State:
    state = GAME.new_initial_state()
    for action in actions:
        state.apply_action(action)
    return state


@pytest.mark.parametrize("seed", range(30))
def test_random_games_are_openspiels(seed: int) -> None:
    assert check_game(othello, GAME, seed) >= 9  # the shortest game of othello


def test_draws_are_uniform() -> None:
    check_draws(othello, GAME.new_initial_state())
    check_draws(othello, position([19, 18, 17, 9, 1, 0]))


def test_a_game_ends_when_a_colour_is_wiped_out() -> None:
    """The shortest such game: e6 f4 e3 f6 g5 d6 e7 f5 c5."""
    squares = ["e6", "f4", "e3", "f6", "g5", "d6", "e7", "f5", "c5"]
    actions = [8 * (int(square[1]) - 1) + "abcdefgh".index(square[0]) for square in squares]
    compiled = othello.read(GAME.new_initial_state())
    for action in actions:
        assert action in list_legal(othello, compiled)
        othello.apply(compiled, action)
    assert othello.player(compiled) == ENDED and othello.result(compiled) == 1.0
