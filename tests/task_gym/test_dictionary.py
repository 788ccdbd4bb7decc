"""DictObservation: the mask beside the observation."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

from task_gym.errors import ArgumentError
from task_gym.spaces import UnicodeText
from task_gym.wrappers import DictObservation, TokenObservation
from tests.task_gym.scripts import Script, turn

EVEN = [1, 0] * 5


def test_observation_and_mask() -> None:
    env = DictObservation(Script(turn("a"), turn("b", 0.5)))
    observation, info = env.reset(seed=0)
    assert list(observation) == ["observation", "action_mask"]
    assert observation["observation"] == "a"
    assert observation["action_mask"].tolist() == EVEN and observation["action_mask"].dtype == np.int8
    assert observation in env.observation_space
    observation, reward, *_, info = env.step(3)
    assert (observation["observation"], reward) == ("b", 0.5)
    assert observation in env.observation_space
    assert info["action_mask"].tolist() == EVEN
    assert env.action_masks().tolist() == [True, False] * 5


def test_the_space_is_the_one_that_readers_of_masks_declare() -> None:
    env = DictObservation(Script(turn("a")))
    assert env.observation_space == gym.spaces.Dict(
        {
            "observation": UnicodeText(1000),
            "action_mask": gym.spaces.Box(0, 1, (10,), np.int8),
        }
    )


def test_the_mask_is_the_observations_own() -> None:
    env = DictObservation(Script(turn("a")))
    observation, info = env.reset()
    observation["action_mask"][:] = 0
    assert info["action_mask"].tolist() == EVEN


def test_whatever_is_inside_is_the_observation() -> None:
    tokens = TokenObservation(Script(turn("a")), lambda text: [ord(text)], 2, 128, 128)
    observation, info = DictObservation(tokens).reset()
    assert observation["observation"].tolist() == [97, 128]
    assert info["text"] == "a"


def test_an_environment_without_masks_is_refused() -> None:
    env = gym.wrappers.TimeLimit(gym.make("CartPole-v1"), 5)
    with pytest.raises(ArgumentError, match=r"DictObservation: .*CartPole.*allowed: one that masks"):
        DictObservation(env)
