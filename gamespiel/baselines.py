"""Agents that are no language model: the games' own opponents, playing the agent's seat."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from game_gym.prompts import SeatView
from gamespiel.agents.noise import Stream, episode_seeds
from gamespiel.agents.policy import PolicySample
from gamespiel.agents.rollout import Decide, Masks
from gamespiel.agents.vec_env import TextVecEnv
from task_gym.opponents import Opponent, make_opponent


def baseline_agent(name: str, env: TextVecEnv, seed: int, episodes: int) -> Decide:
    """An opponent by name (`random`, `first`, `mcts:100`, ...) as an agent in local environments.

    It is built anew for each episode's game and seat, and seeded by (seed, episode). `mcts` reads the true
    state, as the opponent of that name does. No other plays in its place: where players move at once a
    search is refused.

    Raises:
        OpponentError: a name that no opponent has, or a game that may be drawn and that it cannot play.
    """
    first: Any = env.envs[0].unwrapped
    for variant in first.variants:
        make_opponent(name, variant.game, variant.spec, seat=0)
    seeds = episode_seeds(seed, 0, episodes, Stream.BASELINE)
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
