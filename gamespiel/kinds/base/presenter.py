"""The presenter of a kind of task: what reports and names of files ask."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic

from gamespiel.kinds.base.keys import Keys

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gamespiel.agents.rollout import Episode
    from gamespiel.agents.runs.evaluation import Measured, MeasuredReplies


class Presenter(ABC, Generic[Keys]):
    """A kind's titles, groups of results and tables."""

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

    @abstractmethod
    def render_table(self, title: str, rows: Mapping[str, Measured]) -> RenderableType:
        """Returns the measures by group as a table, with a note if it needs one."""

    def render_reply_table(
        self, title: str, masked: Mapping[str, Measured], replies: Mapping[str, Mapping[str, MeasuredReplies]]
    ) -> RenderableType:
        """Returns a table of measures by group, of kinds that are played by replies as text.

        Args:
            title: The title.
            masked: Measures of the masked policy on the same episodes; empty if it did not play.
            replies: Measures of replies, by how they were written ("sampled", "greedy").
        """
        raise NotImplementedError

    def endpoint_groups(self, record: Mapping[str, Any]) -> list[str]:
        """Returns the groups of reports that an episode belongs to, from what ``evaluate`` returned."""
        return []
