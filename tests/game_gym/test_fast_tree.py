"""The compiled search at chance, in a game that is small enough to know its best moves."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")

from numba import njit

from game_gym.opponents.fast import tree
from game_gym.opponents.fast.noise import draw_below, make_noise
from game_gym.opponents.fast.rules import CHANCE, ENDED

pytestmark = pytest.mark.numba

# One seat chooses among three actions, and chance among two outcomes:
# what they pay to the seat, and how often in eight the first comes.
PAYS = {
    "the better mean": ([(-1, 2), (-2, 2), (-3, 2)], [2, 4, 4], 0),
    "the greatest return is proved through chance": ([(3, 3), (1, 1), (2, 2)], [1, 4, 7], 0),
    "a win that is not the greatest ends no search": ([(1, 1), (2, 2), (1, 1)], [4, 4, 4], 1),
    "proof goes before a mean": ([(3, -3), (1, 1), (0, 0)], [7, 4, 4], 1),
    "what is probable counts": ([(3, -3), (-3, 3), (3, -3)], [1, 1, 4], 1),
}


STATE = 11
"""The seat to move, chance or the end; what was chosen or is paid; six returns; three chances in eight."""

ACTIONS = 3


@njit
def player(state: Any) -> Any:
    return state[0]


@njit
def legal(state: Any, actions: Any) -> Any:
    count = 2 if state[0] == CHANCE else 3
    for action in range(count):
        actions[action] = action
    return 0 if state[0] == ENDED else count


@njit
def draw(state: Any, actions: Any, noise: Any) -> Any:
    if state[0] == CHANCE:
        return np.int64(0 if draw_below(noise, 8) < state[8 + state[1]] else 1)
    return draw_below(noise, 3)


@njit
def apply(state: Any, action: Any) -> Any:
    if state[0] == CHANCE:
        state[1] = state[2 + 2 * state[1] + action]
        state[0] = ENDED
    else:
        state[0], state[1] = CHANCE, action


@njit
def result(state: Any) -> Any:
    return 1.0 * state[1]


@njit
def utility(state: Any) -> Any:
    return 3.0


@pytest.fixture(scope="module")
def search() -> Any:
    """Returns the search in this file's game."""
    name = "toy"
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, f"game_gym.opponents.fast.{name}", sys.modules[__name__])
        return tree.load_search(name)[1]


@pytest.mark.parametrize("seat", [0, 1])
@pytest.mark.parametrize("name", PAYS)
def test_the_best_move_is_found(search: Any, name: str, seat: int) -> None:
    pays, chances, best = PAYS[name]
    sign = 1 if seat == 0 else -1
    state = np.array([seat, 0, *(sign * pay for pair in pays for pay in pair), *chances], dtype=np.int64)
    for seed in range(20):
        assert search(state, 2000, 1, 1.414, make_noise(seed)) == best


def test_games_that_declare_no_utility_end_at_1() -> None:
    assert tree.utility(np.zeros(1, dtype=np.int64)) == 1.0
