"""Trains sb3-contrib's MaskablePPO on Leduc poker for some seconds, and counts chips before and after.

`TensorObservation` replaces the text by OpenSpiel's tensor, which a perceptron can read. MaskablePPO finds
the legal-action masks by itself. A best response to the random opponent earns (2.0875 + 2.6597) / 2 chips per
game, the mean over the two seats.
"""

import gymnasium as gym
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from stable_baselines3.common.env_util import make_vec_env

from game_gym.wrappers import RawReturns, TensorObservation

GAME = {"game": "leduc_poker", "opponent": "random", "rules": False}
BEST = (2.0875 + 2.6597) / 2


def chips_per_game(model: MaskablePPO) -> float:
    env = TensorObservation(RawReturns(gym.make("game_gym:GameSpiel-v0", **GAME)))
    env.reset(seed=1_000_000)  # other games than in training
    mean, _ = evaluate_policy(model, env, n_eval_episodes=1000, deterministic=False, warn=False)
    return float(mean)


torch.set_num_threads(1)  # more threads slow down a small network
envs = make_vec_env(
    "game_gym:GameSpiel-v0", n_envs=16, seed=0, env_kwargs=GAME, wrapper_class=TensorObservation
)
model = MaskablePPO("MlpPolicy", envs, n_steps=128, batch_size=256, learning_rate=1e-3, gamma=1.0, seed=0)

print(f"untrained: {chips_per_game(model):+.2f} chips per game")
model.learn(20_000)
trained = chips_per_game(model)
print(f"trained on {model.num_timesteps:,} decisions: {trained:+.2f} chips per game")
print(f"best response: {BEST:+.2f} chips per game; the trained policy earns {trained / BEST:.0%} of it")
