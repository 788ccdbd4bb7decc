"""The presenter of games: results by game, seat and opponent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gamespiel.kinds.base import Presenter, format_opponent
from gamespiel.kinds.games.keys import GameKeys

if TYPE_CHECKING:
    from gamespiel.agents.rollout import Episode


class GamePresenter(Presenter[GameKeys]):
    """Titles that name games and opponent."""

    def describe_tasks(self, env: GameKeys, tasks: Sequence[str], agent: str | None) -> str:
        listed = ", ".join(tasks) if len(tasks) <= 3 else f"{len(tasks)} games"
        return f"{listed} against {format_opponent(env.opponent)}"

    def file_label(self, env: GameKeys, tasks: Sequence[str]) -> str:
        played = tasks[0] if len(tasks) == 1 else f"{len(tasks)}-games"
        return f"{played}-{format_opponent(env.opponent)}"

    def run_name(self, env: GameKeys) -> str | None:
        return env.game

    def group_episodes(self, episodes: Sequence[Episode]) -> dict[str, list[Episode]]:
        from gamespiel.agents.runs.evaluation import group_by

        games = group_by("game", episodes)
        seats = {f"seat {seat}": group for seat, group in group_by("seat", episodes).items()}
        against = {f"against {name}": group for name, group in group_by("opponent", episodes).items()}
        several = {**(games if len(games) > 1 else {}), **(against if len(against) > 1 else {})}
        return {**several, **seats, "all": list(episodes)}

    def endpoint_groups(self, record: Mapping[str, Any]) -> list[str]:
        extra = record["extra"]
        return [str(extra.get("game_name")), f"seat {extra.get('llm_player_id')}"]
