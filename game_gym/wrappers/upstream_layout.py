"""The wrapper that shows the rules once, as upstream does."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from game_gym.prompts import without_rules
from game_gym.wrappers.base import LayoutWrapper
from task_gym.errors import ArgumentError
from task_gym.wrappers.base import Info


class UpstreamLayout(LayoutWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Shows the rules in the first turn of an episode only, as affinetes' sessions do.

    The rest of the text stays as it is. ``reset`` returns the first turn; after an illegal action it is shown
    again, without the rules. With open seats each seat sees the rules in its own first turn.

    Args:
        env: GameSpiel-v0 or GameSpielText-v0 with ``rules=True``.

    Raises:
        ArgumentError: the environment shows no rules, or is no game.
        LayoutError: a wrapper inside changed the beginning of the text.
    """

    def __init__(self, env: gym.Env[str, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        if not self._game.rules:
            raise ArgumentError(
                "UpstreamLayout: an environment with rules=False was given, allowed: rules=True, so that "
                "there are rules to tell in the first turn"
            )
        self._informed: set[int] = set()  # the seats that saw the rules in this episode

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[str, Info]:
        """Begins an episode, in which no seat saw the rules yet."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._informed = set()
        return self.show(observation, info)

    def lay_out(self, text: str, info: Info) -> str:
        """Returns the text, with the rules if the seat has not seen them."""
        shorter = without_rules(text, self._game.variant)
        first = info["seat"] not in self._informed
        self._informed.add(info["seat"])
        return text if first else shorter
