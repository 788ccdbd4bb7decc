"""``NumericInfo``: only numbers, and the same keys, types and shapes at every turn of every environment."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import trace_gym  # noqa: F401  (registers its environments)
from task_gym.wrappers import NumericInfo

ENVIRONMENTS: list[dict[str, Any]] = [
    {"id": "GameSpiel-v0", "game": "kuhn_poker"},
    {"id": "GameSpiel-v0", "task_ids": [(0, 2_199_999_999)], "max_turns": 3},
    {"id": "GameSpielText-v0", "game": "hex", "params": {"board_size": 3}},
    {"id": "CodeTrace-v0", "level": 1},
    {"id": "CodeTraceChoice-v0", "level": 1},
    {"id": "CodeTraceLines-v0", "level": 1},
]


def shape_of(info: dict[str, Any]) -> dict[str, Any]:
    return {key: (type(value), getattr(value, "shape", None)) for key, value in info.items()}


@pytest.mark.parametrize("arguments", ENVIRONMENTS, ids=lambda arguments: arguments["id"])
def test_every_turn_has_the_same_keys_types_and_shapes(arguments: dict[str, Any]) -> None:
    env, shapes, ends = NumericInfo(gym.make(**arguments)), [], []
    for seed in range(3):
        _, info = env.reset(seed=seed)
        shapes.append(shape_of(info))
        over = not math.isnan(info["score"])
        while not over:
            legal = np.flatnonzero(info["action_mask"]) if "action_mask" in info else ()
            action = int(legal[0]) if isinstance(env.action_space, gym.spaces.Discrete) else "no answer"
            _, _, terminated, truncated, info = env.step(action)
            shapes.append(shape_of(info))
            over = terminated or truncated
        ends.append(info)
    assert all(shape == shapes[0] for shape in shapes) and len(shapes) >= 6
    assert all(np.asarray(value).dtype.kind in "bif" for value in ends[0].values())
    assert all(info["turn"] > 0 or info["illegal"] for info in ends)


def test_its_values() -> None:
    """An illegal action costs what it costs upstream, and ends nothing."""
    env = NumericInfo(gym.make("GameSpiel-v0", game="kuhn_poker", rules=False))
    _, info = env.reset(seed=5)
    assert (info["task_id"], info["seed"], info["turn"]) == (-1, 5, 0)
    assert math.isnan(info["score"]) and info["upstream_reward"] == 0.0
    assert not info["success"] and not info["illegal"] and info["action_mask"].tolist() == [1, 1]
    *_, info = env.step(7)
    assert info["illegal"] and info["upstream_reward"] == -0.01 and math.isnan(info["score"])
