"""The wrapper that keeps the numbers of ``info``, under the same keys at every turn."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from task_gym.wrappers.base import Info, TurnWrapper

ADDRESS = ("task_id", "seed", "seat", "turn")
"""Whole numbers; -1 where there is none, as the task id of a game that was named."""


class NumericInfo(TurnWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Keeps of ``info`` what is a number, with the same keys, types and shapes after every reset and step.

    For what stores infos or makes tensors of them: Minari with ``record_infos=True``, Gymnasium's
    ``NumpyToTorch``. Texts, lists of changing length and keys that come at the end would be in their way:
    ``NumpyToTorch`` turns a text into a generator.

    The keys are ``action_mask`` (int8, (n,), 1 = legal; only if the environment masks its actions),
    ``task_id``, ``seed``, ``seat``, ``turn`` (int, -1 if there is none), ``upstream_reward`` (float),
    ``score`` (float, NaN until the end and after a fault), ``success`` (bool) and ``illegal`` (bool: whether
    the action was illegal). It goes outside all wrappers that read the info.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)

    def show(self, observation: Any, info: Info) -> tuple[Any, Info]:
        """Returns the observation, and the numbers of the info."""
        numbers: Info = {"action_mask": np.asarray(info["action_mask"])} if "action_mask" in info else {}
        for key in ADDRESS:
            value = info.get(key)
            numbers[key] = -1 if value is None else int(value)
        score = info.get("score")
        numbers["upstream_reward"] = float(info["upstream_reward"])
        numbers["score"] = math.nan if score is None else float(score)
        numbers["success"] = bool(info.get("success", False))
        numbers["illegal"] = "error" in info
        return observation, numbers
