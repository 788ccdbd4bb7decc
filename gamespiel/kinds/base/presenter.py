"""The presenter of a kind of task: what reports and names of files ask."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic

from gamespiel.kinds.base.keys import Keys

if TYPE_CHECKING:
    from gamespiel.agents.rollout import Episode


class Presenter(ABC, Generic[Keys]):
    """A kind's titles and groups of results."""

    @abstractmethod
    def describe_tasks(self, env: Keys, tasks: Sequence[str], agent: str | None) -> str:
        """Returns the tasks and the opponent of an agent (None for a policy), for titles."""

    def describe_reply_tasks(self, env: Keys, tasks: Sequence[str]) -> str:
        """Returns the tasks and the opponent of replies as text, for titles."""
        return self.describe_tasks(env, tasks, None)

    @abstractmethod
    def file_label(self, env: Keys, tasks: Sequence[str]) -> str:
        """Returns the tasks and the opponent, for names of result files."""

    def run_name(self, env: Keys) -> str | None:
        """Returns the first part of a new run's name; None for the model's name."""
        return None

    @abstractmethod
    def group_episodes(self, episodes: Sequence[Episode]) -> dict[str, list[Episode]]:
        """Returns the episodes by the groups of reports, one of which is "all"."""

    def endpoint_groups(self, record: Mapping[str, Any]) -> list[str]:
        """Returns the groups of reports that an episode belongs to, from what ``evaluate`` returned."""
        return []
