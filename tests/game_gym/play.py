"""Playing episodes in tests: one fixed rule for the agent, one record of what happened."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

import game_gym  # noqa: F401  (registers the environments)

DECLARED = ("leduc_poker", "kuhn_poker", "tic_tac_toe")
LEDUC = 200_000_000


def make(**arguments: Any) -> Any:
    """A bare GameSpiel-v0."""
    return gym.make("GameSpiel-v0", **arguments).unwrapped


def pick(legal: list[int], turn: int, seed: int) -> int:
    """The agent's rule in the recorded games."""
    return legal[(7 * turn + seed) % len(legal)]


def episode(
    env: Any, seed: int, options: dict[str, Any] | None = None, longest: int | None = None
) -> list[tuple[Any, ...]]:
    """Play one episode by the rule, or ``longest`` turns of it; all it showed, as plain data to compare."""
    text, info = env.reset(seed=seed, options=options)
    record: list[tuple[Any, ...]] = [(text, opening(info))]
    over, turn = not info["legal_actions"], 0  # a game may be over before the first turn
    while not over and turn != longest:
        text, reward, terminated, truncated, info = env.step(pick(info["legal_actions"], turn, seed))
        record.append((text, reward, terminated, truncated, plain(info)))
        over, turn = terminated or truncated, turn + 1
    return record


def plain(info: dict[str, Any]) -> dict[str, Any]:
    """An info with its arrays as lists."""
    return {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in info.items()}


def opening(info: dict[str, Any]) -> dict[str, Any]:
    """An info after a reset, without what says that upstream has paid nothing: recorded games lack it."""
    kept = plain(info)
    if "result" not in kept:
        assert kept.pop("upstream_reward") == 0.0
    return kept
