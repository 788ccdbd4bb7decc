"""The base class of wrappers that change a game's text, and access to the game under wrappers."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from game_gym.env import GameSpielEnv
from task_gym.errors import ArgumentError
from task_gym.picture import picture
from task_gym.wrappers.base import Info, TurnWrapper, check_text


def game_env(wrapper: gym.Wrapper[Any, Any, Any, Any]) -> GameSpielEnv:
    """Returns the game under all wrappers, or raises ArgumentError if there is none."""
    env = wrapper.unwrapped
    if not isinstance(env, GameSpielEnv):
        raise ArgumentError(
            f"{wrapper.class_name()}: {env} was given, allowed: GameSpiel-v0 and GameSpielText-v0"
        )
    return env


class LayoutWrapper(TurnWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """A wrapper that shows a turn in another layout.

    Closing texts stay as they are. ``render()`` returns the text in this layout ("ansi") or its picture
    ("rgb_array"); mode "human" prints the environment's own text.
    """

    def __init__(self, env: gym.Env[str, Any]) -> None:
        super().__init__(env)
        check_text(self)
        self._game = game_env(self)
        self._text = ""

    def lay_out(self, text: str, info: Info) -> str:
        """Returns the text of a turn in this layout; the turn has something to choose."""
        raise NotImplementedError

    def show(self, observation: str, info: Info) -> tuple[str, Info]:
        """Returns the text in this layout, and the info as it is."""
        # A cut keeps its position's text and legal actions; every other end has a closing text and none.
        self._text = self.lay_out(observation, info) if info["legal_actions"] else observation
        return self._text, info

    def render(self) -> Any:
        """Returns the observation in this layout, as text or picture; else renders the environment."""
        if self.render_mode == "ansi":
            return self._text
        return picture(self._text) if self.render_mode == "rgb_array" else self.env.render()
