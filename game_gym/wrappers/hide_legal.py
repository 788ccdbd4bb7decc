"""The wrapper that hides the list of legal actions."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from game_gym.prompts import without_choices
from game_gym.wrappers.base import LayoutWrapper
from task_gym.contract import CLOSING
from task_gym.wrappers.base import Info


class HideLegalActions(LayoutWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Leaves the list of legal actions out of the text.

    The text still says what to answer, and mask and info have the legal actions as before. Wrappers that
    rewrite the list, as ShuffledActions does, go inside this one.

    Raises:
        ArgumentError: the environment is no game, or its observations are no texts.
        LayoutError: a wrapper inside changed the end of the text.
    """

    def __init__(self, env: gym.Env[str, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)

    def lay_out(self, text: str, info: Info) -> str:
        """Returns the text without the block of legal actions."""
        state = without_choices(text, info["legal_actions"], info["admissible_commands"])
        return f"{state}\n\n{CLOSING}"
