"""Stable-Baselines3 makes the environments as its documentation writes it, and its MaskablePPO learns."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from game_gym.wrappers import TensorObservation
from task_gym.picture import SHAPE, picture
from task_gym.wrappers import TokenObservation

sb3_contrib = pytest.importorskip("sb3_contrib")

from sb3_contrib import MaskablePPO  # noqa: E402
from sb3_contrib.common.maskable.utils import get_action_masks  # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv  # noqa: E402


def made(n_envs: int = 4, **arguments: Any) -> Any:
    """The environments; SB3 asks for render_mode="rgb_array" by itself."""
    return make_vec_env(
        "game_gym:GameSpiel-v0",
        n_envs=n_envs,
        seed=0,
        env_kwargs={"game": "leduc_poker", **arguments.pop("env_kwargs", {})},
        wrapper_class=TensorObservation,
        **arguments,
    )


@pytest.mark.parametrize(
    ("kind", "n_envs"),
    [(DummyVecEnv, 4), pytest.param(SubprocVecEnv, 2, marks=pytest.mark.launch)],
)
def test_make_vec_env(kind: Any, n_envs: int) -> None:
    vector = made(n_envs, vec_env_cls=kind)
    try:
        assert vector.render_mode == "rgb_array"
        observations = vector.reset()
        assert observations.shape == (n_envs, 30) and observations.dtype == np.float32
        texts = [info["text"] for info in vector.reset_infos]
        images = vector.get_images()
        assert len(images) == n_envs
        assert all((image == picture(text)).all() for image, text in zip(images, texts, strict=True))
        # SB3 puts the pictures into one, in columns of two.
        height, width, colours = SHAPE
        assert vector.render().shape == (2 * height, n_envs // 2 * width, colours)
        masks = np.stack(vector.env_method("action_masks"))
        observations, *_, infos = vector.step(masks.argmax(axis=1))
        assert observations.shape == (n_envs, 30) and len(infos) == n_envs
    finally:
        vector.close()


@pytest.mark.parametrize("game", ["kuhn_poker", "euchre"])
def test_maskable_ppo_plays_legal_moves_only(game: str) -> None:
    def make() -> gym.Env:  # type: ignore[type-arg]
        # An illegal move would raise: masks are all that keeps the learner legal.
        env = gym.make("game_gym:GameSpiel-v0", game=game, rules=False, illegal="raise")
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
