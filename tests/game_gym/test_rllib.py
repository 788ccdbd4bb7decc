"""Games in RLlib: the layout that its masking modules read, and PPO with a mask that arrives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from game_gym.rllib import GameSpielRLlib

LEDUC = {"game": "leduc_poker", "rules": False, "illegal": "raise"}


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    found = pytest.importorskip("ray", reason="Ray is not installed")
    found.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield found
    found.shutdown()


def iteration(module: type) -> dict[str, Any]:
    """Returns the metrics of one iteration of PPO; the environments are in this process."""
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec

    config = (
        PPOConfig()
        .environment(GameSpielRLlib, env_config=LEDUC)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=2)
        .training(train_batch_size_per_learner=256, minibatch_size=64, num_epochs=1)
        .rl_module(rl_module_spec=RLModuleSpec(module_class=module))
        .debugging(seed=0)
    )
    algorithm = config.build_algo()
    try:
        found: dict[str, Any] = algorithm.train()
        return found
    finally:
        algorithm.stop()


def test_the_layout() -> None:
    env = GameSpielRLlib({"game": "leduc_poker"})
    seen, info = env.reset(seed=0)
    assert seen["observations"].shape == (30,) and seen["action_mask"].dtype == np.float32
    # Seat 0 moves first, and cannot fold when there is no bet.
    assert seen["action_mask"].tolist() == [0, 1, 1] and info["legal_actions"] == [1, 2]
    other = gym.make("game_gym:GameSpiel-v0", game="leduc_poker")
    assert info["text"] == other.reset(seed=0)[0]


@pytest.mark.launch
def test_ppo_behind_the_mask(ray: Any) -> None:
    from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule

    # An illegal action would be an error.
    found = iteration(ActionMaskingTorchRLModule)
    assert found["env_runners"]["num_env_steps_sampled"] >= 256
    # The returns are scores, and the best response's from both seats is 0.591.
    assert 0.3 < found["env_runners"]["episode_return_mean"] < 0.7
    assert found["learners"]["default_policy"]["num_module_steps_trained"] >= 256
