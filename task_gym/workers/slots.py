"""The episodes of a caller that resets and steps environments, as addresses for a group of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from task_gym.env import OUTSIDE
from task_gym.errors import EpisodeError
from task_gym.workers.group import Call, Frame, Seed, digest


class Slots:
    """Each environment's reset, its actions since, and its last turn.

    A reset without a seed draws from the generator that the last turn left, as the environment itself would.

    Args:
        advance: Begins calls at once, and returns an iterator of their turns.
        count: Number of environments.

    Attributes:
        frames: The last turn of each that was taken; None before the first.
    """

    def __init__(self, advance: Callable[[Sequence[Call]], Iterable[Frame]], count: int) -> None:
        self._advance = advance
        self.frames: list[Frame | None] = [None] * count
        self._seeds: list[Seed | None] = [None] * count
        self._options: list[dict[str, Any] | None] = [None] * count
        self._actions: list[list[Any]] = [[] for _ in range(count)]

    def reset(
        self, indices: Sequence[int], seeds: Sequence[int | None], options: Sequence[dict[str, Any] | None]
    ) -> Iterator[Frame]:
        """Begins an episode in each of these environments; returns their first turns, in order."""
        calls = []
        for index, seed, option in zip(indices, seeds, options, strict=True):
            self._seeds[index], self._options[index] = self._draw_seed(index, seed), option
            self._actions[index] = []
            calls.append(Call(index, self._require_seed(index), option))
        return self._take(indices, self._advance(calls))

    def step(self, indices: Sequence[int], actions: Sequence[Any]) -> Iterator[Frame]:
        """Gives each of these environments an action; returns their next turns, in order.

        Raises:
            EpisodeError: one of them was never reset.
        """
        calls = []
        for index, action in zip(indices, actions, strict=True):
            seed, frame = self._require_seed(index), self.frames[index]
            if frame is None:
                raise EpisodeError(OUTSIDE)
            self._actions[index].append(action)
            given = tuple(self._actions[index])
            calls.append(Call(index, seed, self._options[index], given, digest(frame.observation)))
        return self._take(indices, self._advance(calls))

    def _draw_seed(self, index: int, seed: int | None) -> Seed:
        if seed is not None:
            return seed
        frame = self.frames[index]
        return np.random.default_rng().bit_generator.state if frame is None else frame.generator

    def _require_seed(self, index: int) -> Seed:
        seed = self._seeds[index]
        if seed is None:
            raise EpisodeError(OUTSIDE)
        return seed

    def _take(self, indices: Sequence[int], frames: Iterable[Frame]) -> Iterator[Frame]:
        for index, frame in zip(indices, frames, strict=True):
            self.frames[index] = frame
            yield frame
