"""The wrapper that lets a curriculum choose tasks and opponents."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from task_gym.wrappers.base import Info
from task_gym.wrappers.sampled import Choice, SampledWrapper, asks


class Curriculum(SampledWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Plays the tasks and opponents that a sampler chooses, and reports the outcomes to it.

    Every ``reset`` asks the sampler for a task id, an opponent and a seed. ``reset(seed=s)`` plays the seed
    s. From then on, draws are addressed by s and their number since then, and not by the sampler's own
    count. Reset options that name a task or an opponent are played as they are, and their outcomes count for
    nothing.

    The environment's own ``task_ids`` must contain all that the sampler may draw (``sampler.task_ids``).
    ``info["curriculum"]`` has the sampler's numbers: of ``task_gym.samplers.stages.Stages``, ``stage``,
    its ``name``, ``progress``, ``success_rate``, ``stage_episodes``, ``episodes`` and ``changes``; at the end
    of an episode that changed the stage also ``events``.

    Args:
        env: A task environment.
        sampler: A sampler, or a shared one (``task_gym.samplers.sharing.share``).

    Raises:
        ArgumentError: the environment does not take a task id as a reset option.
    """

    key = "curriculum"

    def choose(self, seed: int | None, options: Info | None, seeded: bool | None) -> Choice:
        """Returns the sampler's start, unless the caller or a failure replay outside has chosen one."""
        if seeded is not None or asks(options):
            return Choice(None, seed, options, seeded)
        start = self.sampler.draw(self.address(seed))
        given = seed is not None
        return Choice(start, seed if given else start.seed, {**(options or {}), **start.options}, given)
