"""Stable-Baselines3's PPO reads the mask in its observation. An action that it forbids would be an error."""

import torch
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.policies import MultiInputActorCriticPolicy

from game_gym.wrappers import TensorObservation
from task_gym.wrappers import DictObservation


class MaskedPolicy(MultiInputActorCriticPolicy):
    def extract_features(self, obs, features_extractor=None):
        self.mask = obs["action_mask"].bool()
        return super().extract_features(obs, features_extractor)

    def get_distribution(self, obs):  # which predict() calls
        self.mask = obs["action_mask"].bool()
        return super().get_distribution(obs)

    def _get_action_dist_from_latent(self, latent):
        logits = self.action_net(latent).masked_fill(~self.mask, torch.finfo(torch.float32).min)
        return self.action_dist.proba_distribution(action_logits=logits)


def make(n_envs: int, seed: int):
    game = {"game": "leduc_poker", "rules": False, "illegal": "raise"}
    wrap = lambda env: DictObservation(TensorObservation(env))  # noqa: E731
    return make_vec_env("game_gym:GameSpiel-v0", n_envs, seed, env_kwargs=game, wrapper_class=wrap)


def score(model: PPO) -> float:
    return evaluate_policy(model, make(1, seed=1_000_000), 1000, deterministic=False)[0]


model = PPO(MaskedPolicy, make(16, seed=0), n_steps=128, batch_size=256, learning_rate=1e-3, seed=0)
print(f"untrained: score {score(model):.3f}")
print(f"trained on 20,480 decisions: score {score(model.learn(20_000)):.3f}")
