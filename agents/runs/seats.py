"""Seeds that give every seat as many episodes. They are drawn without a learning library."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

import gymnasium as gym

from gamespiel.agents.sampling.noise import Purpose, episode_seeds

PROBES = 64
"""Seeds that are probed for the environment's seats: enough to find 4 equally likely ones."""

Taken = Callable[[Sequence[int]], Container[int]]
"""Returns those of some seeds that an evaluation must not play, such as those of training."""


def draw_balanced_seeds(
    env: gym.Env[Any, Any],
    per_seat: int,
    seed: int,
    options: dict[str, Any] | None = None,
    taken: Taken | None = None,
) -> list[int]:
    """Returns episode seeds that give every seat ``per_seat`` episodes, in the order drawn.

    Args:
        env: The environment, which is reset.
        per_seat: Episodes per seat.
        seed: Seed of the draws.
        options: Options of the resets that find a seed's seat, such as a cheap opponent.
        taken: See ``Taken``.
    """
    stream = episode_seeds(seed, 0, PROBES, Purpose.EVALUATION_TASKS)
    seats = {_find_seat(env, probe, options) for probe in stream}
    quota, chosen, block = dict.fromkeys(seats, per_seat), [], 0
    while any(quota.values()):
        out = taken(stream) if taken else ()
        for candidate in stream:
            if candidate in out:
                continue
            seat = _find_seat(env, candidate, options)
            if quota.get(seat, 0):
                quota[seat] -= 1
                chosen.append(candidate)
        block += 1
        stream = episode_seeds(seed, block, PROBES, Purpose.EVALUATION_TASKS)
    return chosen


def _find_seat(env: gym.Env[Any, Any], seed: int, options: dict[str, Any] | None) -> Any:
    return env.reset(seed=seed, options=options)[1].get("seat")
