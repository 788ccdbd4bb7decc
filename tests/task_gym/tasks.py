"""A task environment of one step, whose score is a tenth of the action."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from task_gym.contract import ending_info
from task_gym.samplers import Outcome, Start
from task_gym.spaces import UnicodeText


class Tenths(gym.Env[str, Any]):
    """Ends at the first step with a score of action / 10; action 11 is a fault.

    Attributes:
        resets: Task id, opponent and seed of every episode.
    """

    observation_space = UnicodeText(100)
    action_space: gym.Space[Any] = gym.spaces.Discrete(12)
    reset_options = ("task_id", "opponent")

    def __init__(self, over_at_reset: bool = False) -> None:
        self.resets: list[tuple[int, str, int]] = []
        self.over_at_reset = over_at_reset

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        options = options or {}
        if seed is None:
            seed = int(self.np_random.integers(1000))
        self.resets.append((options.get("task_id", 0), options.get("opponent", "random"), seed))
        return "a", self.info() | (self.ending(0.0, "loss") if self.over_at_reset else {})

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self.over_at_reset:
            return "b", 0.0, True, False, self.info() | self.ending(0.0, "loss")
        if action == 11:
            return "b", 0.0, False, True, self.info() | self.ending(None, "fault")
        score = action / 10
        return "b", score, True, False, self.info() | self.ending(score, "win" if score > 0.5 else "loss")

    def ending(self, score: float | None, result: str) -> dict[str, Any]:
        return ending_info(score, [score or 0.0], result, [])

    def info(self) -> dict[str, Any]:
        task_id, opponent, seed = self.resets[-1]
        mask = np.ones(12, np.int8)
        return {"action_mask": mask, "task_id": task_id, "seed": seed, "game": "tenths", "opponent": opponent}

    def action_masks(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return np.ones(12, np.bool_)


def outcome(start: Start, score: float | None, game: str = "g", result: str = "loss") -> Outcome:
    return Outcome(start, game, score, score is not None and score > 0.5, result)


def play(env: Any, action: int = 0, **reset: Any) -> dict[str, Any]:
    """Plays an episode; returns the info of its end."""
    env.reset(**reset)
    info: dict[str, Any] = env.step(action)[-1]
    return info
