"""Access to the game under wrappers."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from game_gym.env import GameSpielEnv
from task_gym.errors import ArgumentError


def game_env(wrapper: gym.Wrapper[Any, Any, Any, Any]) -> GameSpielEnv:
    """Returns the game under all wrappers, or raises ArgumentError if there is none."""
    env = wrapper.unwrapped
    if not isinstance(env, GameSpielEnv):
        raise ArgumentError(
            f"{wrapper.class_name()}: {env} was given, allowed: GameSpiel-v0 and GameSpielText-v0"
        )
    return env
