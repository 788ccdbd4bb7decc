"""Othello's compiled rules beside OpenSpiel's."""

from __future__ import annotations

import random

import pyspiel
import pytest

pytest.importorskip("numba")

from game_gym.opponents.fast import othello
from game_gym.opponents.fast.rules import ENDED, list_legal
from tests.game_gym.fast_rules import check_draws, check_game

GAME = pyspiel.load_game("othello")
PASS = 64


def position(actions: list[int]) -> pyspiel.State:
    state = GAME.new_initial_state()
    for action in actions:
        state.apply_action(action)
    return state


@pytest.mark.parametrize("seed", range(30))
def test_random_games_are_openspiels(seed: int) -> None:
    assert check_game(othello, GAME, seed) >= 9  # the shortest game of othello


def test_the_opening() -> None:
    # d3, c4, f5, e6 by rows from the top: 2*8+3, 3*8+2, 4*8+5, 5*8+4.
    assert list_legal(othello, othello.read(GAME.new_initial_state())) == [19, 26, 37, 44]


def test_draws_are_uniform() -> None:
    check_draws(othello, GAME.new_initial_state())
    check_draws(othello, position([19, 18, 17, 9, 1, 0]))


def test_a_player_without_a_move_passes_and_the_game_ends_when_both_must() -> None:
    """The shortest game that wipes a colour out: e6 f4 e3 f6 g5 d6 e7 f5 c5."""
    squares = ["e6", "f4", "e3", "f6", "g5", "d6", "e7", "f5", "c5"]
    actions = [8 * (int(square[1]) - 1) + "abcdefgh".index(square[0]) for square in squares]
    compiled = othello.read(GAME.new_initial_state())
    for action in actions:
        assert action in list_legal(othello, compiled)
        othello.apply(compiled, action)
    assert othello.player(compiled) == ENDED and othello.result(compiled) == 1.0
    passed = 0
    for seed in range(30):
        state = GAME.new_initial_state()
        noise = random.Random(seed)
        while not state.is_terminal():
            if state.legal_actions() == [PASS]:
                passed += 1
                assert list_legal(othello, othello.read(state)) == [PASS]
            state.apply_action(noise.choice(state.legal_actions()))
    assert passed > 0
