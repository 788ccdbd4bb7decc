"""Stable-Baselines3 makes the environments as its documentation writes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from game_gym.wrappers import TensorObservation
from task_gym.picture import SHAPE, picture

pytest.importorskip("stable_baselines3")

from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv


@pytest.mark.parametrize(
    ("kind", "n_envs"),
    [(DummyVecEnv, 4), pytest.param(SubprocVecEnv, 2, marks=pytest.mark.launch)],
)
def test_make_vec_env(kind: Any, n_envs: int) -> None:
    """SB3 asks for render_mode="rgb_array" by itself."""
    vector = make_vec_env(
        "game_gym:GameSpiel-v0",
        n_envs=n_envs,
        seed=0,
        env_kwargs={"game": "leduc_poker"},
        wrapper_class=TensorObservation,
        vec_env_cls=kind,
    )
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
