"""Random numbers addressed by purpose, not by the order of the draws.

A step's draws depend on (seed, step, episode, turn, depth) alone. A run that is killed and resumed, or that
plays its episodes in waves of another size, draws the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from task_gym.seeding import DRAWN_LIMIT

Uniforms = Callable[[int], npt.NDArray[np.float64]]
"""Depth of a decided token to its uniforms in [0, 1), float64, one per request."""


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


@dataclass(frozen=True)
class Address:
    """The address of a decision's noise.

    Attributes:
        seed: Seed of the run or of the evaluation.
        purpose: The purpose.
        step: Complete steps of the run.
        turn: The episode's turn.
        episode: The episode among those of the step.
    """

    seed: int
    purpose: Purpose
    step: int
    turn: int
    episode: int

    @property
    def group(self) -> tuple[int, int, int, int]:
        """Returns what requests have in common whose numbers come from the same generators."""
        return self.seed, self.purpose, self.step, self.turn

    def uniforms(self, depth: int, episodes: Sequence[int] | None = None) -> npt.NDArray[np.float64]:
        """Returns uniforms in [0, 1) for the depth-th decided token, float64 (episodes,).

        They are those of the group at the given positions, by default of this request alone.
        """
        places = [self.episode] if episodes is None else list(episodes)
        # A generator's first numbers are the same, however many are drawn.
        row = _generator(*self.group, depth).random(max(places) + 1)
        chosen: npt.NDArray[np.float64] = row[places]
        return chosen


@dataclass(frozen=True)
class DrawnNoise:
    """Noise that consumes a generator: each depth of each group that shares a forward draws once.

    Attributes:
        draw: Returns that many uniforms in [0, 1), float64.
        size: Requests in the batch; a draw has one number for each.
        episode: Position of the request in the batch.
    """

    draw: Callable[[int], npt.NDArray[np.float64]]
    size: int
    episode: int

    @classmethod
    def for_batch(cls, draw: Callable[[int], npt.NDArray[np.float64]], size: int) -> list[DrawnNoise]:
        """Returns the noise of each request of a batch."""
        return [cls(draw, size, row) for row in range(size)]

    @property
    def group(self) -> tuple[int, int]:
        return id(self.draw), self.size

    def uniforms(self, depth: int, episodes: Sequence[int] | None = None) -> npt.NDArray[np.float64]:
        return self.draw(self.size)[[self.episode] if episodes is None else list(episodes)]


Noise = Address | DrawnNoise
"""The place of one request's noise, beside that of others that share generators with it."""


def group_uniforms(noises: Sequence[Noise]) -> Uniforms:
    """Returns the noise of requests by depth; those of the same group are drawn together."""
    rows_of: dict[Hashable, list[int]] = {}
    for row, noise in enumerate(noises):
        rows_of.setdefault(noise.group, []).append(row)
    groups = [(rows, [noises[row].episode for row in rows]) for rows in rows_of.values()]

    def uniforms(depth: int) -> npt.NDArray[np.float64]:
        numbers = np.empty(len(noises))
        for rows, episodes in groups:
            numbers[rows] = noises[rows[0]].uniforms(depth, episodes)
        return numbers

    return uniforms


def _generator(seed: int, *key: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *key])))


def episode_seeds(seed: int, step: int, episodes: int, purpose: Purpose = Purpose.TASKS) -> list[int]:
    """Returns the environment seeds of a step's episodes."""
    draws: list[int] = _generator(seed, purpose, step).integers(DRAWN_LIMIT, size=episodes).tolist()
    return draws


class TrainingSeeds:
    """Which of some seeds the steps of a run have drawn. A long run draws too many to keep them.

    Args:
        seed: Seed of the run.
        episodes: Episodes of a step.
        asked: The seeds in question.
    """

    def __init__(self, seed: int, episodes: int, asked: frozenset[int]) -> None:
        self._seed, self._episodes, self._asked = seed, episodes, asked
        self._steps = 0
        self._first_step: dict[int, int] = {}

    def find_drawn(self, step: int) -> frozenset[int]:
        """Returns those that were drawn in steps 0 to ``step`` - 1; steps are gone through once."""
        for each in range(self._steps, step):
            draws = episode_seeds(self._seed, each, self._episodes)
            for seed in self._asked.intersection(draws):
                self._first_step.setdefault(seed, each)
        self._steps = max(self._steps, step)
        return frozenset(seed for seed, first in self._first_step.items() if first < step)


def opponent_uniforms(seed: int, step: int, episodes: int) -> npt.NDArray[np.float64]:
    """Returns uniforms in [0, 1) that draw the opponents of a step's episodes, shape (episodes,)."""
    return _generator(seed, Purpose.OPPONENTS, step).random(episodes)


def permutation(seed: int, step: int, epoch: int, turns: int) -> npt.NDArray[np.int64]:
    """Returns the order in which an epoch visits a step's turns, int64 (turns,)."""
    return _generator(seed, Purpose.SHUFFLE, step, epoch).permutation(turns)
