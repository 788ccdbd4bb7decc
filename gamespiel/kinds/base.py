"""The protocol of a kind of task: what training, evaluation and reports ask of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import gymnasium as gym
from rich.console import RenderableType

from gamespiel.agents.evaluation import Measured
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.rollout import Episode
from gamespiel.agents.vec_env import TextVecEnv
from gamespiel.config import InvalidValueError
from gamespiel.config.sections import EnvConfig
from gamespiel.exact import ExactComparison

MakeEnvs = Callable[[int], TextVecEnv]
"""Number of environments to that many copies of the configured one."""

ShowProgress = Callable[[int], AbstractContextManager[Callable[[bool], None]]]
"""Number of episodes to a context whose value is called after each step; see `gamespiel.report.progress`."""


class Kind(ABC):
    """A kind of task. It has no state: the `env` section of a configuration says which tasks and how."""

    environment: ClassVar[str]
    """Id of the environment that a policy plays."""
    unit: ClassVar[str]
    """What several episodes are called."""
    has_opponents: ClassVar[bool] = False
    """Whether the section's opponent plays."""

    @abstractmethod
    def arguments(self, env: EnvConfig) -> dict[str, Any]:
        """Returns what the section means to `gym.make` of the environment.

        Raises:
            InvalidValueError: nothing in it chooses a task.
        """

    def settled(self, env: EnvConfig) -> EnvConfig:
        """Returns the section with names that mean the same tasks everywhere and at any time."""
        return env

    @abstractmethod
    def check_played(self, env: EnvConfig, who: str) -> None:
        """Raises InvalidValueError unless an episode of the section can be played by one agent.

        Args:
            env: The section.
            who: Who wants to play, "training" or "evaluation".
        """

    @abstractmethod
    def tasks(self, env: gym.Env[Any, Any]) -> list[str]:
        """Returns the names of what may be drawn, in alphabetical order."""

    @abstractmethod
    def where(self, env: EnvConfig, tasks: Sequence[str], agent: str | None) -> str:
        """Returns what an agent (None for a policy) plays, and against whom, as titles say it."""

    @abstractmethod
    def file_label(self, env: EnvConfig, tasks: Sequence[str]) -> str:
        """Returns what is played, and against whom, as names of result files say it."""

    # -- play ----------------------------------------------------------------------------------------------

    @abstractmethod
    def at_once(self, count: int) -> int:
        """Returns how many environments play `count` episodes per seat at once."""

    @abstractmethod
    def seeds(self, envs: TextVecEnv, count: int, seed: int) -> list[int]:
        """Returns the seeds of an evaluation: `count` episodes per seat."""

    @abstractmethod
    def play_agent(
        self, name: str, env: EnvConfig, count: int, seed: int, make_envs: MakeEnvs, shown: ShowProgress
    ) -> list[Episode]:
        """Plays the episodes of an evaluation with a baseline, by name."""

    @abstractmethod
    def groups(self, episodes: Sequence[Episode]) -> dict[str, list[Episode]]:
        """Returns the episodes by what they are reported by, and "all" of them."""

    @abstractmethod
    def table(self, title: str, rows: Mapping[str, Measured]) -> RenderableType:
        """Returns the measurements by group as a table, with what explains it."""

    # -- exact values, of kinds that have them -------------------------------------------------------------

    def check_exact(self) -> None:
        """Raises InvalidValueError unless there are tasks of this kind whose values can be computed."""
        raise InvalidValueError(f"--exact is for games small enough to enumerate, not for {self.unit}")

    def is_enumerable(self, env: EnvConfig) -> bool:
        """Whether the values of the configured task can be computed."""
        return False

    def solve_policy(self, policy: LLMPolicy, env: EnvConfig, *, trained: bool = True) -> ExactComparison:
        """Returns a policy's exact values, beside those without adapters if it is `trained`."""
        raise NotImplementedError(f"{type(self).__name__} has no exact values")

    def solve_agent(self, name: str, env: EnvConfig) -> ExactComparison:
        """Returns a baseline's exact values."""
        raise NotImplementedError(f"{type(self).__name__} has no exact values")

    def share(self, policy: LLMPolicy, env: EnvConfig) -> float:
        """Returns the share of best response that a policy reaches, at temperature 1."""
        raise NotImplementedError(f"{type(self).__name__} has no exact values")
