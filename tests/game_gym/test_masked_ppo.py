"""Stock MaskablePPO learns behind the tokens wrapper."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import game_gym  # noqa: F401  (registers the environments)
from task_gym.wrappers import TokenObservation


@pytest.mark.parametrize("game", ["kuhn_poker", "euchre"])
def test_maskable_ppo_plays_legal_moves_only(game: str) -> None:
    pytest.importorskip("sb3_contrib")
    from sb3_contrib import MaskablePPO
    from sb3_contrib.common.maskable.utils import get_action_masks
    from stable_baselines3.common.vec_env import DummyVecEnv

    def make() -> gym.Env:  # type: ignore[type-arg]
        # An illegal move would raise: masks are all that keeps the learner legal.
        env = gym.make("GameSpiel-v0", game=game, rules=False, illegal="raise")
        return TokenObservation(env, lambda text: list(text.encode()), length=768, vocab_size=256, pad_id=256)

    vector = DummyVecEnv([make, make])
    model = MaskablePPO("MlpPolicy", vector, n_steps=32, batch_size=32, n_epochs=1, seed=0, device="cpu")
    model.learn(128)
    vector.seed(9)  # the game of euchre with this seed is over at its reset
    observation = vector.reset()
    assert observation.shape == (2, 768) and observation.dtype == np.int32
    assert vector.env_method("action_masks")[0].any() == (game != "euchre")
    for _ in range(20):
        masks = get_action_masks(vector)
        actions, _ = model.predict(observation, action_masks=masks)
        assert all(masks[i, action] or not masks[i].any() for i, action in enumerate(actions))
        observation, *_ = vector.step(actions)
