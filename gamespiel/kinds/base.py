"""The base class of kinds of task: everything that training, evaluation and reports need of one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar

import gymnasium as gym
from rich.console import RenderableType

from gamespiel.agents.evaluation import Measured
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.rollout import Episode, OnStep
from gamespiel.agents.vec_env import TextVecEnv
from gamespiel.config import InvalidValueError
from gamespiel.config.sections import EnvConfig
from gamespiel.exact import ExactComparison

MakeEnvs = Callable[[int], TextVecEnv]
"""Number of environments to that many copies of the configured environment."""

ShowProgress = Callable[[int], AbstractContextManager[OnStep]]
"""Number of episodes to a context whose value is called after each step; see ``report.progress``."""


class Kind(ABC):
    """A kind of task. It has no state: the configuration's ``env`` section chooses tasks and how to play."""

    environment: ClassVar[str]
    """Id of the environment that a policy plays."""
    unit: ClassVar[str]
    """Plural noun for episodes, in messages."""
    has_opponents: ClassVar[bool] = False
    """Whether the ``env`` section's opponent plays."""

    @abstractmethod
    def arguments(self, env: EnvConfig) -> dict[str, Any]:
        """Returns the section as arguments of ``gym.make``.

        Raises:
            InvalidValueError: the section chooses no task.
        """

    def settled(self, env: EnvConfig) -> EnvConfig:
        """Returns the section with names that mean the same tasks on any machine and at any time."""
        return env

    @abstractmethod
    def check_played(self, env: EnvConfig, who: str) -> None:
        """Raises unless one agent can play an episode of the section.

        Args:
            env: The section.
            who: "training" or "evaluation", for the message.

        Raises:
            InvalidValueError: one agent cannot.
        """

    @abstractmethod
    def tasks(self, env: gym.Env[Any, Any]) -> list[str]:
        """Returns the names of the tasks that may be drawn, in alphabetical order."""

    @abstractmethod
    def where(self, env: EnvConfig, tasks: Sequence[str], agent: str | None) -> str:
        """Returns what an agent (None for a policy) plays, and against whom, for titles."""

    @abstractmethod
    def file_label(self, env: EnvConfig, tasks: Sequence[str]) -> str:
        """Returns what is played, and against whom, for names of result files."""

    # -- play ----------------------------------------------------------------------------------------------

    @abstractmethod
    def at_once(self, count: int) -> int:
        """Returns the number of environments that play ``count`` episodes per seat at once."""

    @abstractmethod
    def seeds(self, envs: TextVecEnv, count: int, seed: int) -> list[int]:
        """Returns the seeds of an evaluation: ``count`` episodes per seat."""

    @abstractmethod
    def play_agent(
        self, name: str, env: EnvConfig, count: int, seed: int, make_envs: MakeEnvs, shown: ShowProgress
    ) -> list[Episode]:
        """Plays the episodes of an evaluation with a baseline, by name, and returns them."""

    @abstractmethod
    def groups(self, episodes: Sequence[Episode]) -> dict[str, list[Episode]]:
        """Returns the episodes by the groups of reports, one of which is "all"."""

    @abstractmethod
    def table(self, title: str, rows: Mapping[str, Measured]) -> RenderableType:
        """Returns the measures by group as a table, with a note if it needs one."""

    # -- exact values, of kinds that have them -------------------------------------------------------------

    def check_exact(self) -> None:
        """Raises unless exact values can be computed for some tasks of this kind.

        Raises:
            InvalidValueError: for none.
        """
        raise InvalidValueError(f"--exact is for games small enough to enumerate, not for {self.unit}")

    def is_enumerable(self, env: EnvConfig) -> bool:
        """Returns whether exact values of the configured task can be computed."""
        return False

    def solve_policy(self, policy: LLMPolicy, env: EnvConfig, *, trained: bool = True) -> ExactComparison:
        """Returns a policy's exact values and, if it is ``trained``, those without adapters."""
        raise NotImplementedError(f"{type(self).__name__} has no exact values")

    def solve_agent(self, name: str, env: EnvConfig) -> ExactComparison:
        """Returns a baseline's exact values."""
        raise NotImplementedError(f"{type(self).__name__} has no exact values")

    def share(self, policy: LLMPolicy, env: EnvConfig) -> float:
        """Returns the share of best response that a policy reaches, at temperature 1."""
        raise NotImplementedError(f"{type(self).__name__} has no exact values")
