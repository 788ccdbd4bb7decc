"""A third kind of task in one file, which ``test_kinds.py`` adds to a copy of the package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic.dataclasses import dataclass

from gamespiel.agents.fields import Index, key
from gamespiel.errors import ConfigError
from gamespiel.kinds import base

if TYPE_CHECKING:
    import gymnasium as gym

    from gamespiel.agents.rollout import Episode, Masks
    from gamespiel.agents.runs.evaluation import Taken
    from gamespiel.agents.sampling.decisions import Answer
    from gamespiel.agents.vec_env import TextVecEnv


@dataclass(frozen=True, config=base.PART)
class DuelKeys(base.EnvKeys):
    """The keys of duels."""

    table: Literal["small", "large"] | None = key(None, "duels: two players or three")
    round: Index | None = key(None, "duels: accepted with a table")
    rival: str = key("first", "duels: who plays the other seats")


class DuelDeclaration(base.Declaration[DuelKeys]):
    """Kuhn poker at one of two tables."""

    env_type = "duel"
    unit = "duels"
    environment = "GameSpiel-v0"
    baselines = base.Baselines("low or high", "low|high")
    keys = DuelKeys
    choosing = ("table",)
    belonging = ("round",)

    def check_keys(self, env: DuelKeys) -> None:
        if env.round is not None and env.table is None:
            raise ConfigError("env.round needs env.table")

    def arguments(self, env: DuelKeys) -> dict[str, Any]:
        players = 3 if env.table == "large" else 2
        return {"game": "kuhn_poker", "params": {"players": players}, "opponent": env.rival}

    def check_playable(self, env: DuelKeys, who: str) -> None:
        if env.rival == "open":
            raise ConfigError(f"{who} needs a rival")


class DuelPlayer(base.Player[DuelKeys]):
    """Plays the seeds one after the other."""

    def task_names(self, env: gym.Env[Any, Any]) -> list[str]:
        return ["duel"]

    def seeds(self, envs: TextVecEnv, count: int, seed: int, taken: Taken | None = None) -> list[int]:
        return list(range(seed, seed + count))

    def play_agent(
        self,
        name: str,
        env: DuelKeys,
        count: int,
        seed: int,
        make_envs: base.MakeEnvs,
        show_progress: base.ShowProgress,
    ) -> list[Episode]:
        from gamespiel.agents.runs.evaluation import play_seeds

        def decide(texts: list[str], masks: Masks, indices: list[int], turn: int) -> list[Answer]:
            return base.answers_of([row.nonzero()[0][-1 if name == "high" else 0] for row in masks])

        envs = make_envs(count)
        with show_progress(count) as on_step:
            return play_seeds(envs, decide, self.seeds(envs, count, seed), on_step)


class DuelPresenter(base.Presenter[DuelKeys]):
    """One group, and one line in the place of a table."""

    def describe_tasks(self, env: DuelKeys, tasks: Sequence[str], agent: str | None) -> str:
        return f"the {env.table} table"

    def file_label(self, env: DuelKeys, tasks: Sequence[str]) -> str:
        return "duel"

    def group_episodes(self, episodes: Sequence[Episode]) -> dict[str, list[Episode]]:
        return {"all": list(episodes)}


DECLARATION = DuelDeclaration()
KIND = base.Kind(DECLARATION, DuelPlayer(DECLARATION), DuelPresenter())
