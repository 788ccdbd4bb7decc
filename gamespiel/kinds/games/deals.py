"""The deals of a comparison of games: as many of each game, drawn from one seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium as gym

from gamespiel.errors import InvalidValueError
from gamespiel.kinds.episodes import Deal, EpisodeAddress

PROBES = 64
"""Seeds that are drawn together."""

PATIENCE = 200
"""Draws of ``PROBES`` seeds, none with a new deal of a game that needs some, after which it is given up."""


def draw_deals(env: gym.Env[Any, Any], games: Sequence[str], count: int, seed: int) -> list[Deal]:
    """Returns ``count`` deals of each game, in rounds of one deal of every game; closes the environment.

    Args:
        env: The local environment, which is reset.
        games: The games that it may draw.
        count: Deals of each game.
        seed: Seed of the draws.

    Raises:
        InvalidValueError: a game has too few tasks, or is hardly ever drawn.
    """
    from game_gym.task import Task
    from gamespiel.agents.sampling.noise import Purpose, episode_seeds

    local: Any = env.unwrapped
    cheap = {"opponent": "first"}  # a deal does not depend on the opponent
    drawn: dict[str, list[Deal]] = {game: [] for game in games}
    met: set[tuple[int | None, int]] = set()
    block = idle = 0
    while any(len(deals) < count for deals in drawn.values()):
        before = len(met)
        for candidate in episode_seeds(seed, block, PROBES, Purpose.EVALUATION_TASKS):
            info = env.reset(seed=candidate, options=cheap)[1]
            deals, key = drawn[info["game"]], (info["task_id"], info["seed"])
            if len(deals) == count or key in met:
                continue
            met.add(key)
            address = EpisodeAddress(*key, Task(info["task_id"], local.variant))
            deals.append(
                Deal(info["game"], len(deals), candidate, address, tuple(range(local.variant.players)))
            )
        block, idle = block + 1, 0 if len(met) > before else idle + 1
        if idle == PATIENCE:
            game, deals = min(drawn.items(), key=lambda item: len(item[1]))
            raise InvalidValueError(
                f"--compare needs {count} deals of each game, and {len(deals)} of {game} were found; "
                "allowed: more task ids of that game, or fewer --num_episodes"
            )
    env.close()
    return [drawn[game][number] for number in range(count) for game in games]
