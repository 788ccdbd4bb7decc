"""OpenSpiel's returns as rewards."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from game_gym.wrappers.base import game_env
from task_gym.wrappers.base import Info, MaskedWrapper


class RawReturns(MaskedWrapper):
    """Pay the game's own return at the end, in its own unit: chips, points, or 1 for a win.

    The step that terminates the episode pays ``info["returns"][info["seat"]]``, every other step 0, and an
    illegal action costs 0.01 besides, so that an episode's return is the game's, less 0.01 for each illegal
    action. That holds for games that pay move by move too (their returns are the sums), and whatever
    ``reward`` the environment was made with. A game given up pays its seat's least return. With open seats
    the seat is the one that moved last.

    An episode that is truncated pays nothing at its end: a cut by ``max_turns`` leaves everything that the
    position is worth, points so far included, to the value that a learner bootstraps from, and a fault is
    nobody's doing. An episode that is over at reset pays nothing, as ever: its returns are in the info.

    Raises:
        ArgumentError: an environment that is no game.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        game_env(self)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        """As the wrapped environment's, paid in returns."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        paid = float(reward) if "error" in info else 0.0
        if terminated:
            paid += info["returns"][info["seat"]]
        return observation, paid, terminated, truncated, info
