"""Games for Tianshou: its view of a PettingZoo environment, with masks in the observation."""

from __future__ import annotations

from typing import Any

from game_gym import pettingzoo
from task_gym.errors import ImportNameError

try:
    from tianshou.env import PettingZooEnv
except ModuleNotFoundError as error:
    raise ImportNameError(
        "game_gym.tianshou: Tianshou is not installed; pip install 'gamespiel[tianshou]'"
    ) from error


class GameSpielTianshou(PettingZooEnv):
    """A game whose seats are Tianshou's agents. Observations are ``{"agent_id", "obs", "mask"}``.

    Infos are empty: Tianshou's buffers stack them, and lists of legal actions have no common length.

    Args:
        **arguments: Those of ``game_gym.pettingzoo.GameSpielAEC``; the default observation is the tensor.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(pettingzoo.env(**{"observation": "tensor", **arguments}))

    def reset(self, *args: Any, **keywords: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begins an episode."""
        observation, _ = super().reset(*args, **keywords)
        return observation, {}

    def step(self, action: Any) -> tuple[dict[str, Any], list[float], bool, bool, dict[str, Any]]:
        """Makes a move for the agent to move; rewards are a list, one per seat."""
        observation, rewards, terminated, truncated, _ = super().step(action)
        return observation, rewards, terminated, truncated, {}
