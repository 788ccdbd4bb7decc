"""Rules once, as upstream tells them."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from game_gym.prompts import without_rules
from game_gym.wrappers.base import LayoutWrapper
from task_gym.errors import ArgumentError
from task_gym.wrappers.base import Info


class UpstreamLayout(LayoutWrapper):
    """Tell the rules in the first turn of an episode only, as affinetes' sessions do.

    The rest of the text stays as it is. The first turn is what reset returns; after an illegal action it is
    shown again, without the rules. With open seats each seat is told the rules in its own first turn.

    Args:
        env: GameSpiel-v0 or GameSpielText-v0 with ``rules=True``.

    Raises:
        ArgumentError: an environment that tells no rules, or is no game.
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
        #: Seats that were told the rules in this episode.
        self._told: set[int] = set()

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[str, Info]:
        """Begin an episode, in which nobody was told the rules yet."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._told = set()
        return self.show(observation, info)

    def tell(self, text: str, info: Info) -> str:
        """The text, with the rules where the seat has not been told them."""
        shorter = without_rules(text, self._game.variant)
        first = info["seat"] not in self._told
        self._told.add(info["seat"])
        return text if first else shorter
