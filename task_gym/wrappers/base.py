"""The wrappers' base classes: one passes the mask through, one changes a turn's observation and info."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from task_gym.errors import ArgumentError

Info = dict[str, Any]


class MaskedWrapper(gym.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """A wrapper that passes the mask through, and records its arguments for ``env.spec``.

    Args:
        env: The environment.
        **arguments: A subclass's own arguments, by name.
    """

    def __init__(self, env: gym.Env[Any, Any], **arguments: Any) -> None:
        RecordConstructorArgs.__init__(self, **arguments)
        super().__init__(env)

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns the wrapped environment's mask: bool, shape (n,), True = legal."""
        masks: NDArray[np.bool_] = self.env.get_wrapper_attr("action_masks")()
        return masks


class TurnWrapper(MaskedWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """A wrapper that changes a turn's observation and info, in reset and in step alike."""

    def show(self, observation: Any, info: Info) -> tuple[Any, Info]:
        """Returns this turn's observation and info, made from the wrapped environment's."""
        raise NotImplementedError

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Any, Info]:
        """Resets the wrapped environment, and shows its first turn."""
        return self.show(*self.env.reset(seed=seed, options=options))

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Info]:
        """Steps the wrapped environment, and shows its turn."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        observation, info = self.show(observation, info)
        return observation, reward, terminated, truncated, info


def check_text(wrapper: gym.Wrapper[Any, Any, Any, Any]) -> None:
    """Raises ArgumentError unless the wrapped environment has text observations."""
    space = wrapper.env.observation_space
    if not isinstance(space, gym.spaces.Text):
        raise ArgumentError(
            f"{wrapper.class_name()}: an environment with observations in {space} was given, allowed: text "
            "observations (wrappers that replace the text go outside those that read it)"
        )


def check_mask(wrapper: gym.Wrapper[Any, Any, Any, Any]) -> None:
    """Raises ArgumentError unless the wrapped environment says which actions are legal."""
    if not hasattr(wrapper.unwrapped, "action_masks"):
        raise ArgumentError(
            f"{wrapper.class_name()}: an environment without action_masks() was given, {wrapper.unwrapped}; "
            "allowed: one that masks its actions"
        )
