"""Minari records games with their infos, and reads them back."""

import os
import tempfile

import gymnasium as gym
import numpy as np

folder = tempfile.TemporaryDirectory()
os.environ["MINARI_DATASETS_PATH"] = folder.name  # for this example: else data sets are kept at home

from minari import DataCollector  # noqa: E402

import game_gym  # noqa: E402, F401  (registers the environments)
from game_gym.wrappers import TensorObservation  # noqa: E402
from task_gym.wrappers import NumericInfo  # noqa: E402

# Minari keeps the infos of an episode in arrays: the same numbers at every turn.
game = NumericInfo(TensorObservation(gym.make("GameSpiel-v0", game="kuhn_poker")))
env = DataCollector(game, record_infos=True)
rng = np.random.default_rng(0)
for seed in range(20):
    _, info = env.reset(seed=seed)  # a seed of its own: Minari would draw one of 64 bits
    over = False
    while not over:
        action = int(rng.choice(np.flatnonzero(info["action_mask"])))
        _, _, terminated, truncated, info = env.step(action)
        over = terminated or truncated
dataset = env.create_dataset("games/kuhn-v0", algorithm_name="random")
scores = [float(episode.infos["score"][-1]) for episode in dataset.iterate_episodes()]
paid = [float(episode.rewards.sum()) for episode in dataset.iterate_episodes()]
print(f"{dataset.total_episodes} games, scores and rewards agree: {scores == paid}")
folder.cleanup()
