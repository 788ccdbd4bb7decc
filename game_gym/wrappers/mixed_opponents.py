"""The wrapper that plays against several opponents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from game_gym.options import check_opponent
from game_gym.wrappers.base import game_env
from task_gym.arguments import check_whole
from task_gym.errors import ArgumentError, SeedError
from task_gym.opponents import opponent_waits
from task_gym.samplers.base import check_weights, draw_opponent
from task_gym.seeding import SEED_LIMIT
from task_gym.wrappers.base import Info, MaskedWrapper
from task_gym.wrappers.sampled import sampled

_PURPOSE = 106
"""Keeps the draw of an opponent apart from all else that follows from a seed."""


class MixedOpponents(MaskedWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Draws an opponent for each episode, with a probability proportional to its weight.

    The seed of ``reset(seed=s)`` decides who plays; without a seed, the environment's own generator does.
    ``info["opponent"]`` names the one that plays. A reset option ``opponent`` is played as it is.

    Args:
        env: A game.
        weights: Opponents by name, with their weights, as ``{"random": 0.5, "mcts:100": 0.3}``.

    Raises:
        ArgumentError: the environment is no game, or has a ``Curriculum`` or ``FailureReplay`` inside, which
            would take the mixture's choice for the caller's; or a weight is not above 0.
        OpponentError: an opponent does not exist, or cannot play every game that may be drawn.
    """

    def __init__(self, env: gym.Env[Any, Any], weights: Mapping[str, float]) -> None:
        self.weights = check_weights("opponents", weights)
        super().__init__(env, weights=dict(weights))
        if (inner := sampled(env)) is not None:
            raise ArgumentError(
                f"MixedOpponents: {inner.class_name()} was given inside; allowed: MixedOpponents inside it"
            )
        game = game_env(self)
        for name in self.weights:
            check_opponent(name, game._tasks)
        # The game's own opponent may be one that neither waits nor searches.
        game.waits = game.waits or any(opponent_waits(name) for name in self.weights)
        game.searches = game.searches or any(game.may_search(name) for name in self.weights)
        mean = sum(weight * game.estimate_search(name) for name, weight in self.weights.items() if weight)
        game.search_seconds = max(game.search_seconds, mean / sum(self.weights.values()))

    @property
    def opponents(self) -> tuple[str, ...]:
        """Names of the opponents that may play."""
        return tuple(self.weights)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Any, Info]:
        """Begins an episode against one of the opponents."""
        if "opponent" not in (options or {}):
            generator = self.unwrapped.np_random
            if seed is not None:
                key = [check_whole("seed", seed, SEED_LIMIT, SeedError), _PURPOSE]
                generator = np.random.Generator(np.random.Philox(np.random.SeedSequence(key)))
            options = {**(options or {}), "opponent": draw_opponent(self.weights, generator)}
        return self.env.reset(seed=seed, options=options)
