"""Games in Tianshou: agents per seat, and a mask that arrives."""

from __future__ import annotations

import functools

import numpy as np
import pytest

pytest.importorskip("tianshou", reason="Tianshou is not installed")

from tianshou.data import Collector, VectorReplayBuffer
from tianshou.env import DummyVectorEnv
from tianshou.policy import MultiAgentPolicyManager, RandomPolicy

from game_gym.tianshou import GameSpielTianshou

make = functools.partial(GameSpielTianshou, game="leduc_poker", reward="returns", illegal="raise")


def test_random_play_behind_the_mask() -> None:
    """An illegal action would be an error."""
    buffer = VectorReplayBuffer(600, 3)
    players = MultiAgentPolicyManager([RandomPolicy(), RandomPolicy()], make())
    found = Collector(players, DummyVectorEnv([make] * 3), buffer).collect(n_episode=30)
    assert found["n/ep"] == 30
    rows, _ = buffer.sample(0)
    assert rows.obs.obs.shape[1] == 30 and rows.obs.mask.shape[1] == 3 and not rows.obs.mask.all()
    assert rows.obs.mask[np.arange(len(rows)), rows.act].all()
    # One seat wins what the other loses.
    assert np.allclose(rows.rew.sum(axis=1), 0) and np.abs(rows.rew).max() >= 1
