"""Games for RLlib: observations in the layout that its action-masking modules read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import numpy as np

from game_gym.env import GameSpielEnv
from game_gym.wrappers import TensorObservation
from task_gym.wrappers.base import Info, TurnWrapper


class GameSpielRLlib(TurnWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """A game with observations ``{"observations", "action_mask"}``: both float32, the mask 1 = legal.

    ``PPOConfig().environment(GameSpielRLlib, env_config={"game": "leduc_poker"})`` takes the class. RLlib's
    ``ActionMaskingTorchRLModule`` gives forbidden actions no probability. After the end no action is allowed.

    Args:
        config: The arguments of ``GameSpiel-v0``. RLlib passes its ``env_config``.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__(TensorObservation(GameSpielEnv(**config)), config=config)
        mask = gym.spaces.Box(0.0, 1.0, shape=(self.action_masks().size,), dtype=np.float32)
        self.observation_space = gym.spaces.Dict(
            {"observations": self.env.observation_space, "action_mask": mask}
        )

    def show(self, observation: Any, info: Info) -> tuple[dict[str, Any], Info]:
        """Returns the dictionary, and the info as it is."""
        return {"observations": observation, "action_mask": info["action_mask"].astype(np.float32)}, info
