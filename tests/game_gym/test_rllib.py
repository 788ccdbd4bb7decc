"""Games in RLlib: the layout that its masking modules read. ``examples/rllib_ppo.py`` learns behind it."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

from game_gym.rllib import GameSpielRLlib


def test_the_layout() -> None:
    env = GameSpielRLlib({"game": "leduc_poker"})
    seen, info = env.reset(seed=0)
    assert seen["observations"].shape == (30,) and seen["action_mask"].dtype == np.float32
    # Seat 0 moves first, and cannot fold when there is no bet.
    assert seen["action_mask"].tolist() == [0, 1, 1] and info["legal_actions"] == [1, 2]
    other = gym.make("game_gym:GameSpiel-v0", game="leduc_poker")
    assert info["text"] == other.reset(seed=0)[0]
