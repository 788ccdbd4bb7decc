"""RLlib's PPO learns Leduc poker behind the mask. An action that the mask forbids would be an error."""

import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule

from game_gym.rllib import GameSpielRLlib

ray.init(num_cpus=1, include_dashboard=False, logging_level="error")
config = (
    PPOConfig()
    .environment(GameSpielRLlib, env_config={"game": "leduc_poker", "rules": False, "illegal": "raise"})
    .env_runners(num_env_runners=0, num_envs_per_env_runner=16)
    .training(lr=3e-3, gamma=1.0, train_batch_size_per_learner=1024, minibatch_size=256, num_epochs=4)
    .rl_module(rl_module_spec=RLModuleSpec(module_class=ActionMaskingTorchRLModule))
    .debugging(seed=0, log_level="ERROR")
)
algorithm = config.build_algo()
for iteration in range(1, 16):
    metrics = algorithm.train()["env_runners"]
    print(f"iteration {iteration}: score {metrics['episode_return_mean']:.3f}")
algorithm.stop()
ray.shutdown()
