"""The wrapper that shows the rules once, as affinetes' sessions do."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from game_gym.prompts import without_rules
from game_gym.wrappers.base import game_env
from task_gym.errors import ArgumentError
from task_gym.picture import picture
from task_gym.wrappers.base import Info, TurnWrapper, check_text


class UpstreamLayout(TurnWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Shows the rules in the first turn of an episode only, as affinetes' sessions do.

    The rest of the text stays as it is. ``reset`` returns the first turn; after an illegal action it is shown
    again, without the rules. With open seats each seat sees the rules in its own first turn.

    ``render()`` returns the text in this layout ("ansi") or its picture ("rgb_array"); mode "human" prints
    the environment's own text.

    Args:
        env: GameSpiel-v0 or GameSpielText-v0 with ``rules=True``.

    Raises:
        ArgumentError: the environment shows no rules, or is no game, or its observations are no texts.
        LayoutError: a wrapper inside changed the beginning of the text.
    """

    def __init__(self, env: gym.Env[str, Any]) -> None:
        super().__init__(env)
        check_text(self)
        self._game = game_env(self)
        if not self._game.rules:
            raise ArgumentError(
                "UpstreamLayout: an environment with rules=False was given, allowed: rules=True, so that "
                "there are rules to tell in the first turn"
            )
        self._informed: set[int] = set()  # the seats that saw the rules in this episode
        self._text = ""

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[str, Info]:
        """Begins an episode, in which no seat saw the rules yet."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._informed = set()
        return self.show(observation, info)

    def show(self, observation: str, info: Info) -> tuple[str, Info]:
        """Returns the text, with the rules if the seat has not seen them, and the info as it is."""
        self._text = observation
        # A cut keeps its position's text and legal actions; every other end has a closing text and none.
        if info["legal_actions"]:
            shorter = without_rules(observation, self._game.variant)
            if info["seat"] in self._informed:
                self._text = shorter
            self._informed.add(info["seat"])
        return self._text, info

    def render(self) -> Any:
        """Returns the observation in this layout, as text or picture; else renders the environment."""
        if self.render_mode == "ansi":
            return self._text
        return picture(self._text) if self.render_mode == "rgb_array" else self.env.render()
