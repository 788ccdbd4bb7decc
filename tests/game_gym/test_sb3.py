"""Stable-Baselines3 makes the environments as its documentation writes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from game_gym.wrappers import TensorObservation
from task_gym.picture import SHAPE, picture

sb3_contrib = pytest.importorskip("sb3_contrib")

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
    [(DummyVecEnv, 4), pytest.param(SubprocVecEnv, 2, marks=pytest.mark.slow)],
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


def test_a_render_mode_of_ones_own() -> None:
    vector = made(env_kwargs={"render_mode": "ansi"})
    vector.reset()
    assert vector.render_mode == "ansi"
    assert vector.env_method("render") == [info["text"] for info in vector.reset_infos]


def test_maskable_ppo_learns_on_it() -> None:
    vector = made()
    model = sb3_contrib.MaskablePPO(
        "MlpPolicy", vector, n_steps=16, batch_size=32, n_epochs=1, seed=0, device="cpu"
    )
    model.learn(128)
    assert model.num_timesteps == 128
    vector.close()


IGNORE = ["A2C", "ARS", "DQN", "PPO", "QRDQN", "RecurrentPPO", "TRPO"]
CONTINUOUS = ["CrossQ", "DDPG", "SAC", "TD3", "TQC"]


def algorithm(name: str) -> Any:
    import stable_baselines3

    return getattr(stable_baselines3, name, None) or getattr(sb3_contrib, name)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_algorithms_that_take_no_discrete_actions(name: str) -> None:
    with pytest.raises(AssertionError, match="action spaces"):
        algorithm(name)("MlpPolicy", made(1), device="cpu")


@pytest.mark.parametrize("name", [*IGNORE, pytest.param("MaskablePPO", id="MaskablePPO reads it")])
def test_algorithms_that_ignore_the_mask(name: str) -> None:
    """Leduc poker forbids a fold with nothing to match; untrained, who sees no mask soon tries it."""
    small = {"learning_starts": 10} if "DQN" in name else {} if name == "ARS" else {"n_steps": 16}
    kind = "MlpLstmPolicy" if name == "RecurrentPPO" else "MlpPolicy"
    more = {"batch_size": 16} if name in ("PPO", "MaskablePPO", "RecurrentPPO", "TRPO") else {}
    vector = made(2)
    found: list[bool] = []
    step = vector.step_wait

    def watched() -> Any:
        result = step()
        found.extend("error" in info for info in result[3])
        return result

    vector.step_wait = watched
    algorithm(name)(kind, vector, device="cpu", seed=0, **small, **more).learn(200)
    assert any(found) == (name != "MaskablePPO") and len(found) >= 200
