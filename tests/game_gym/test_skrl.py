"""skrl wraps environments, vectors and several agents as they are."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

from game_gym.wrappers import TensorObservation

skrl = pytest.importorskip("skrl.envs.wrappers.torch", reason="skrl is not installed")

import torch  # noqa: E402


@pytest.mark.parametrize("vector", [False, True])
def test_an_environment_is_recognised(vector: bool) -> None:
    made: Any = TensorObservation(gym.make("game_gym:GameSpiel-v0", game="kuhn_poker"))
    if vector:
        wrappers = [TensorObservation]
        made = gym.make_vec("GameSpiel-v0", 2, "sync", wrappers=wrappers, game="kuhn_poker")
    env = skrl.wrap_env(made, verbose=False)
    observations, _ = env.reset()
    assert observations.shape == (1 + vector, 11)
    _, rewards, *_ = env.step(torch.zeros(1 + vector, 1, dtype=torch.int64))
    assert rewards.shape == (1 + vector, 1)


def test_several_agents() -> None:
    from game_gym.pettingzoo import parallel_env

    env = skrl.wrap_env(parallel_env(game="kuhn_poker", observation="tensor", mask="info"), verbose=False)
    observations, infos = env.reset()
    assert env.possible_agents == ["player_0", "player_1"]
    assert [tuple(seen.shape) for seen in observations.values()] == [(1, 11), (1, 11)]
    masks = {agent: infos[agent]["action_mask"] for agent in env.possible_agents}
    actions = {agent: torch.tensor([[int(mask.argmax())]]) for agent, mask in masks.items()}
    _, rewards, *_ = env.step(actions)
    assert {agent: float(reward) for agent, reward in rewards.items()} == {"player_0": 0.0, "player_1": 0.0}
