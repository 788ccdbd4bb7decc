"""Scores around zero."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from task_gym.wrappers.base import Info, MaskedWrapper


class ZeroCentredReward(MaskedWrapper):
    """Pay 2·score - 1 in place of the score: 1 for the best end, 0 for a draw, -1 for the worst.

    With score s, the step that terminates the episode pays ``reward + s - 1``. Where the reward was the score
    alone that is 2s - 1; the cost of an illegal action is added to it as it was, so that an episode's return
    is 2s - 1 less 0.01 for each illegal action, and a forfeit's last step pays -1.01. Every other step pays
    what it paid.

    An episode that is truncated pays nothing at its end: a cut by ``max_turns`` has no outcome that could be
    centred, so that a learner which bootstraps adds the position's value to 0 and not to a loss, and a fault
    is nobody's doing. A learner that does not bootstrap sees a cut as a draw. An episode that is over at
    reset pays nothing, as ever: its score is in the info.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        """As the wrapped environment's, with the score centred where the episode terminates."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        paid = float(reward)
        if terminated:
            paid += info["score"] - 1.0
        return observation, paid, terminated, truncated, info
