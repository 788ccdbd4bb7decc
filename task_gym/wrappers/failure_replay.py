"""The wrapper that plays failed starts again."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from task_gym.samplers.base import Start
from task_gym.wrappers.base import Info
from task_gym.wrappers.sampled import REPLAY, Choice, SampledWrapper, asks


class FailureReplay(SampledWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Starts a share of the episodes as an earlier failure started: same task, same opponent, same seed.

    It replays starts and no transitions. ``reset(seed=s)`` plays the seed s and no replay. From then on,
    draws are addressed by s and their number since then, and not by the sampler's own count. Reset options
    that name a task or an opponent are played as they are, and their outcomes count for nothing.

    ``info["replay"]`` has ``replayed`` (whether this episode is a replay) and the numbers of
    ``task_gym.samplers.failures.Failures``: ``size``, ``share`` of replays, ``mean_priority``,
    ``episodes``, ``replays``, ``stored``, ``mastered``, ``given_up`` and ``pushed_out``.

    Args:
        env: A task environment, with or without a ``task_gym.wrappers.curriculum.Curriculum`` inside; a
            Curriculum may also be outside.
        sampler: A ``Failures``, or a shared one (``task_gym.samplers.sharing.share``).

    Raises:
        ArgumentError: the environment does not take a task id as a reset option.
    """

    key = REPLAY

    def choose(self, seed: int | None, options: Info | None, seeded: bool | None) -> Choice:
        """Returns a start of the store, or an empty one, with which everything stays as it was."""
        if asks(options) and seeded is None:
            return Choice(None, seed, options)
        if seed is not None if seeded is None else seeded:
            self.address(seed)
            return Choice(Start(), seed, options, seeded)
        start = self.sampler.draw(self.address(None))
        if start.replayed:
            return Choice(start, start.seed, {**(options or {}), **start.options}, seeded=False)
        return Choice(start, seed, options, seeded)

    def about(self, start: Start | None) -> Info:
        """Returns whether the episode is a replay."""
        return {"replayed": start is not None and start.replayed}
