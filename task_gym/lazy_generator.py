"""A Gymnasium environment that makes its random generator at the first draw."""

from __future__ import annotations

from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
from gymnasium.utils.seeding import np_random

Observation = TypeVar("Observation")
Action = TypeVar("Action")


class LazyGeneratorEnv(gym.Env[Observation, Action]):
    """An environment whose ``reset(seed=)`` keeps the seed, and seeds ``np_random`` with it at its first use.

    Seeding NumPy's generator takes about 10 µs, as long as a hand of poker. An environment whose episodes
    follow from the seed itself seldom draws from the generator.
    """

    _generator: np.random.Generator | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Takes a seed, as ``gymnasium.Env.reset`` does."""
        if seed is not None:
            self._generator, self._np_random_seed = None, seed

    # Gymnasium's own attribute, which its np_random, np_random_seed and checker read and write.
    @property
    def _np_random(self) -> np.random.Generator | None:
        if self._generator is None and self._np_random_seed is not None:
            self._generator, _ = np_random(self._np_random_seed)
        return self._generator

    @_np_random.setter
    def _np_random(self, generator: np.random.Generator | None) -> None:
        self._generator = generator
