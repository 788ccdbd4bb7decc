"""The observation and the mask in one dictionary."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from task_gym.wrappers.base import Info, TurnWrapper, check_mask


class DictObservation(TurnWrapper):
    """Put the mask beside the observation: ``{"observation": …, "action_mask": int8 (n,), 1 = legal}``.

    The keys, and the mask's Box, are those that PettingZoo's environments have and that Tianshou reads. The
    observation may be a text or whatever a wrapper inside made of it: tokens, a tensor, a chat. All zeros in
    the mask mean what they mean in the info: the episode is over.

    Raises:
        ArgumentError: an environment without ``action_masks()``.
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
        """The dictionary; its mask is a copy, and the info stays as it is."""
        return {"observation": observation, "action_mask": info["action_mask"].copy()}, info
