"""skrl wraps several agents as they are. ``examples/skrl_ppo.py`` wraps an environment."""

from __future__ import annotations

import pytest

skrl = pytest.importorskip("skrl.envs.wrappers.torch", reason="skrl is not installed")

import torch  # noqa: E402


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
