"""The advice of a trained policy about a position: a probability per legal action, and a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import torch

from gamespiel.assembly import load_policy
from gamespiel.errors import ConfigError


@dataclass(frozen=True)
class Advice:
    """A policy's view of one position.

    Attributes:
        probabilities: One per legal action, in the order of ``info["legal_actions"]``.
        value: The critic's estimate of the score to come.
    """

    probabilities: Sequence[float]
    value: float


class Advisor:
    """A run's policy, asked about one position at a time.

    Args:
        run: A run's folder, or one of its checkpoints.
        env: The environment whose observations it reads.

    Raises:
        TaskGymError: there is no such run, or its policy writes replies, which have no probabilities.
    """

    def __init__(self, run: str | Path, env: gym.Env[Any, Any]) -> None:
        self._policy = load_policy(run, env)
        if not self._policy.answers.masked:
            raise ConfigError(
                f"--checkpoint {run} writes replies as text (env.decode: text), which give legal actions no "
                "probabilities: gamespiel watch shows its replies"
            )

    def __call__(self, observation: str, legal: Sequence[int]) -> Advice:
        """Returns the policy's probabilities of the legal actions, and its value."""
        with torch.no_grad():
            (probabilities,) = self._policy.distribution([observation], [list(legal)])
            value = float(self._policy.predict_values([observation])[0, 0])
        return Advice(probabilities.tolist(), value)
