"""The wrapper that pays OpenSpiel's returns."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from game_gym.wrappers.base import game_env
from task_gym.wrappers.base import Info, MaskedWrapper


class RawReturns(MaskedWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Pays the game's own return at the end, in its own unit: chips, points, or 1 for a win.

    The step that terminates the episode pays ``info["returns"][info["seat"]]``, and every other step 0. An
    illegal action also costs 0.01, so that an episode's return is the game's, less 0.01 for each illegal
    action. This is also true of games that pay move by move (their returns are the sums), and of every
    ``reward`` that the environment was made with. A game given up pays its seat's least return. With open
    seats the seat is the one that moved last.

    A truncated episode pays nothing at its end. After a cut by ``max_turns`` a learner bootstraps from the
    position's value, which includes the points so far. A fault is nobody's doing. An episode that is over at
    reset pays nothing, as without this wrapper: its returns are in the info.

    Raises:
        ArgumentError: the environment is no game.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        super().__init__(env)
        game_env(self)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        """Steps the wrapped environment, and pays returns."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        paid = float(reward) if "error" in info else 0.0
        if terminated:
            paid += info["returns"][info["seat"]]
        return observation, paid, terminated, truncated, info
