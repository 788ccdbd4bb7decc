"""The presenter of code tracing: results by level and by family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gamespiel.kinds.base import Presenter
from gamespiel.kinds.traces.baselines import REPLIES
from gamespiel.kinds.traces.declaration import DECLARATION
from gamespiel.kinds.traces.keys import REPLY_ENVIRONMENT, TraceKeys, reply_environment

if TYPE_CHECKING:
    from gamespiel.agents.rollout import Episode


class TracePresenter(Presenter[TraceKeys]):
    """Titles that name the environment."""

    def describe_tasks(self, env: TraceKeys, tasks: Sequence[str], agent: str | None) -> str:
        return REPLY_ENVIRONMENT if agent in REPLIES else DECLARATION.environment

    def describe_reply_tasks(self, env: TraceKeys, tasks: Sequence[str]) -> str:
        return reply_environment(env)

    def file_label(self, env: TraceKeys, tasks: Sequence[str]) -> str:
        return "trace"

    def group_episodes(self, episodes: Sequence[Episode]) -> dict[str, list[Episode]]:
        """Returns episodes by level and by family, if there is more than one, and all of them."""
        groups: dict[str, list[Episode]] = {}
        for name in ("level", "family"):
            values = {episode.info[name] for episode in episodes} - {None}
            if len(values) > 1:
                for value in sorted(values):
                    groups[f"{name} {value}"] = [e for e in episodes if e.info[name] == value]
        return {**groups, "all": list(episodes)}

    def endpoint_groups(self, record: Mapping[str, Any]) -> list[str]:
        extra = record["extra"]
        named = {name: extra.get(name) for name in ("level", "family")}
        return [f"{name} {value}" for name, value in named.items() if value is not None]
