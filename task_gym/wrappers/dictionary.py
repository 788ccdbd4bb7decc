"""The wrapper that puts observation and mask into one dictionary."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from task_gym.wrappers.base import Info, TurnWrapper, check_mask


class DictObservation(TurnWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Puts the mask beside the observation: ``{"observation": …, "action_mask": int8 (n,), 1 = legal}``.

    The keys and the mask's Box are those of PettingZoo's environments, which Tianshou reads. The observation
    may be a text, or what a wrapper inside returns in its place: tokens, a tensor, a chat. A mask of zeros
    means that the episode is over, as in the info.

    Raises:
        ArgumentError: the environment has no ``action_masks()``.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        check_mask(self)
        # Not the action space's n: a reply as text is masked too.
        size = self.action_masks().size
        self.observation_space = gym.spaces.Dict(
            {
                "observation": env.observation_space,
                "action_mask": gym.spaces.Box(0, 1, shape=(size,), dtype=np.int8),
            }
        )

    def show(self, observation: Any, info: Info) -> tuple[dict[str, Any], Info]:
        """Returns the dictionary, with a copy of the mask, and the info as it is."""
        return {"observation": observation, "action_mask": info["action_mask"].copy()}, info
