"""Curriculum and failure replay over programs: levels as stages."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

import trace_gym  # noqa: F401  (registers the environments)
from task_gym.samplers import Failures, Stage, Stages
from task_gym.wrappers import Curriculum, FailureReplay
from trace_gym.programs.builtin import ids_of


def right(env: Any, info: dict[str, Any]) -> int:
    """The number of the true output."""
    number: int = info["admissible_commands"].index(env.unwrapped.trace.truth)
    return number


def test_levels_are_stages() -> None:
    stages = Stages(
        [Stage(f"level {level}", task_ids=ids_of(level=level)) for level in (1, 2)], progression_window=3
    )
    env = FailureReplay(Curriculum(gym.make("CodeTraceChoice-v0"), stages), Failures(failure_replay_prob=1.0))
    levels = []
    for _ in range(4):
        _, info = env.reset()
        levels.append(info["level"])
        *_, info = env.step(right(env, info))
        assert info["success"]
    assert levels == [1, 1, 1, 2]
    _, info = env.reset()
    *_, info = env.step((right(env, info) + 1) % len(info["legal_actions"]))
    assert info["result"] == "loss" and info["replay"]["size"] == 1
    _, again = env.reset()
    assert again["replay"]["replayed"] and again["task_id"] == info["task_id"]
    env.close()


def test_predicted_output() -> None:
    stages = Stages([Stage("level 1", task_ids=ids_of(level=1)), Stage("level 2")], progression_window=1)
    env = Curriculum(gym.make("CodeTrace-v0"), stages)
    env.reset()
    *_, info = env.step(env.unwrapped.trace.truth)  # type: ignore[attr-defined]
    assert info["success"] and info["curriculum"]["name"] == "level 2"
    env.close()
