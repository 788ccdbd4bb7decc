"""Games: their environment, baselines, groups of results and exact values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from rich.console import Group, RenderableType
from rich.text import Text

from game_gym.prompts import SeatView
from game_gym.task import CONFIGS
from gamespiel import exact
from gamespiel.agents.evaluation import Measured, balanced_seeds, by_game, by_seat, play_seeds
from gamespiel.agents.noise import Purpose, episode_seeds
from gamespiel.agents.policy import LLMPolicy, PolicySample
from gamespiel.agents.rollout import Decide, Episode, Masks
from gamespiel.agents.vec_env import TextVecEnv
from gamespiel.config import InvalidValueError
from gamespiel.config.sections import EnvConfig
from gamespiel.exact import ExactComparison
from gamespiel.kinds.base import Kind, MakeEnvs, ShowProgress
from gamespiel.report.tables import SAMPLED_NOTE, sampled_table
from task_gym.opponents import OPEN, Opponent, make_opponent

SEATS = 2
"""Seats of nearly all games: the environments that an evaluation makes for each episode per seat."""


class Games(Kind):
    """OpenSpiel games against an opponent."""

    environment = "GameSpiel-v0"
    unit = "games"
    has_opponents = True

    def arguments(self, env: EnvConfig) -> dict[str, Any]:
        arguments: dict[str, Any] = {
            "opponent": env.opponent,
            "seeding": env.seeding,
            "rules": env.rules,
            "reward": env.reward,
            "illegal": env.illegal,
            "max_turns": env.max_turns,
        }
        if env.task_id is not None:
            return arguments | {"task_id": env.task_id}
        if env.game is not None:
            return arguments | {"game": env.game, "params": env.params or None}
        if env.allowed_game_indices:
            ranges = [(i * CONFIGS, (i + 1) * CONFIGS - 1) for i in env.allowed_game_indices]
            return arguments | {"task_ids": ranges}
        if env.task_ids:
            return arguments | {"task_ids": list(env.task_ids)}
        raise InvalidValueError(
            "the env section chooses no game: give one of task_id, task_ids, game and allowed_game_indices, "
            "or start from a preset with --preset"
        )

    def check_played(self, env: EnvConfig, who: str) -> None:
        if env.opponent == OPEN:
            raise InvalidValueError(
                f"{who} needs an opponent to play against; {OPEN!r} leaves every seat to the caller"
            )

    def tasks(self, env: gym.Env[Any, Any]) -> list[str]:
        local: Any = env.unwrapped
        return sorted({variant.spec.name for variant in local.variants})

    def where(self, env: EnvConfig, tasks: Sequence[str], agent: str | None) -> str:
        listed = ", ".join(tasks) if len(tasks) <= 3 else f"{len(tasks)} games"
        return f"{listed} against {env.opponent}"

    def file_label(self, env: EnvConfig, tasks: Sequence[str]) -> str:
        return f"{tasks[0] if len(tasks) == 1 else f'{len(tasks)}-games'}-{env.opponent}"

    def at_once(self, count: int) -> int:
        return SEATS * count

    def seeds(self, envs: TextVecEnv, count: int, seed: int) -> list[int]:
        # A seat does not depend on the opponent, and "first" is the cheapest.
        return balanced_seeds(envs, count, seed, {"opponent": "first"})

    def play_agent(
        self, name: str, env: EnvConfig, count: int, seed: int, make_envs: MakeEnvs, shown: ShowProgress
    ) -> list[Episode]:
        envs = make_envs(self.at_once(count))
        seeds = self.seeds(envs, count, seed)
        agent = baseline_agent(name, envs, seed, len(seeds))
        with shown(len(seeds)) as on_step:
            return play_seeds(envs, agent, seeds, on_step)

    def groups(self, episodes: Sequence[Episode]) -> dict[str, list[Episode]]:
        games = by_game(episodes)
        seats = {f"seat {seat}": own for seat, own in by_seat(episodes).items()}
        return {**(games if len(games) > 1 else {}), **seats, "all": list(episodes)}

    def table(self, title: str, rows: Mapping[str, Measured]) -> RenderableType:
        return Group(sampled_table(title, rows), Text(SAMPLED_NOTE))

    def check_exact(self) -> None:
        """Does nothing: solving a game finds out whether it is small enough."""

    def is_enumerable(self, env: EnvConfig) -> bool:
        return exact.is_enumerable(env)

    def solve_policy(self, policy: LLMPolicy, env: EnvConfig, *, trained: bool = True) -> ExactComparison:
        return exact.of_policy(policy, env, trained=trained)

    def solve_agent(self, name: str, env: EnvConfig) -> ExactComparison:
        return exact.of_agent(name, env)

    def share(self, policy: LLMPolicy, env: EnvConfig) -> float:
        return exact.share(policy, env)


def baseline_agent(name: str, env: TextVecEnv, seed: int, episodes: int) -> Decide:
    """Returns an opponent by name (``random``, ``mcts:100``, ...) as an agent in local environments.

    It is built anew for each episode's game and seat, and seeded by (seed, episode). ``mcts`` reads the true
    state, as the opponent of that name does. No other opponent replaces it: a search is refused in games
    with simultaneous moves.

    Raises:
        OpponentError: no opponent has that name, or it cannot play a game that may be drawn.
    """
    first: Any = env.envs[0].unwrapped
    for variant in first.variants:
        make_opponent(name, variant.game, variant.spec, seat=0)
    seeds = episode_seeds(seed, 0, episodes, Purpose.BASELINE)
    playing: dict[int, tuple[Opponent, SeatView]] = {}

    def begin(episode: int, local: Any) -> tuple[Opponent, SeatView]:
        view = SeatView(local.variant, local.seat, rules=True)
        opponent = make_opponent(name, local.variant.game, local.variant.spec, view.seat)
        opponent.restart(seeds[episode])
        return opponent, view

    def decide(texts: list[str], masks: Masks, indices: list[int], turn: int) -> PolicySample:
        actions = []
        for episode in indices:
            local: Any = env.envs[episode % env.num_envs].unwrapped
            if turn == 0:
                playing[episode] = begin(episode, local)
            opponent, view = playing[episode]
            view.state = local.state
            actions.append(opponent.act(view))
        zeros, no_model = torch.zeros(len(indices)), torch.full((len(indices),), torch.nan)
        return PolicySample(np.array(actions, dtype=np.int64), zeros, zeros, no_model)

    return decide
