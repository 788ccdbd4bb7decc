"""Random numbers addressed by purpose, not by the order of the draws.

A step's draws depend on (seed, step, episode, turn, depth) alone. A run that is killed and resumed, or that
plays its episodes in waves of another size, draws the same numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from task_gym.seeding import SEED_LIMIT


class Purpose(IntEnum):
    """The purpose of random numbers: each purpose has its own generator.

    SeedSequence pads short keys with zeros, so keys of one purpose must not differ by trailing zeros alone.
    """

    TASKS = 0
    ACTIONS = 1
    SHUFFLE = 2
    EVALUATION_TASKS = 3
    EVALUATION_ACTIONS = 4
    BASELINE = 5
    OPPONENTS = 10


def _generator(seed: int, *key: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *key])))


def episode_seeds(seed: int, step: int, episodes: int, purpose: Purpose = Purpose.TASKS) -> list[int]:
    """Returns the environment seeds of a step's episodes."""
    draws: list[int] = _generator(seed, purpose, step).integers(SEED_LIMIT, size=episodes).tolist()
    return draws


def action_uniforms(
    seed: int,
    step: int,
    turn: int,
    depth: int,
    batch: int,
    episodes: Sequence[int],
    purpose: Purpose = Purpose.ACTIONS,
) -> npt.NDArray[np.float64]:
    """Returns uniforms in [0, 1) for the depth-th decision of a turn of the episodes, shape (episodes,)."""
    row: npt.NDArray[np.float64] = _generator(seed, purpose, step, turn, depth).random(batch)[list(episodes)]
    return row


def opponent_uniforms(seed: int, step: int, episodes: int) -> npt.NDArray[np.float64]:
    """Returns uniforms in [0, 1) that draw the opponents of a step's episodes, shape (episodes,)."""
    return _generator(seed, Purpose.OPPONENTS, step).random(episodes)


def permutation(seed: int, step: int, epoch: int, turns: int) -> npt.NDArray[np.int64]:
    """Returns the order in which an epoch visits a step's turns, int64 (turns,)."""
    return _generator(seed, Purpose.SHUFFLE, step, epoch).permutation(turns)
