"""An environment that does what a script says."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from task_gym.spaces import UnicodeText

#: Text, reward, terminated, truncated, info.
Step = tuple[str, float, bool, bool, dict[str, Any]]


def turn(text: str, reward: float = 0.0, **info: Any) -> Step:
    return text, reward, False, False, info


class Script(gym.Env[Any, Any]):
    """Shows one step of the script after another, whatever is answered; the first at reset.

    Actions are 0 … 9; the even ones are legal.
    """

    observation_space = UnicodeText(1000)
    action_space: gym.Space[Any] = gym.spaces.Discrete(10)

    def __init__(self, *steps: Step) -> None:
        self.steps = steps
        self.answers: list[Any] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.answers = []
        text, *_, info = self.steps[0]
        return text, self.masked(info)

    def step(self, action: Any) -> Step:
        self.answers.append(action)
        *shown, info = self.steps[len(self.answers)]
        return *shown, self.masked(info)  # type: ignore[return-value]

    def masked(self, info: dict[str, Any]) -> dict[str, Any]:
        return {"action_mask": self.action_masks().astype(np.int8), **info}

    def action_masks(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return np.arange(10) % 2 == 0
