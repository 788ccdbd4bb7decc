"""The wrapper that centres scores at zero."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
from gymnasium.utils import RecordConstructorArgs

from task_gym.wrappers.base import Info, MaskedWrapper


class ZeroCentredReward(MaskedWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Pays 2·score - 1 in place of the score: 1 for the best end, 0 for a draw, -1 for the worst.

    With score s, the step that terminates the episode pays ``reward + s - 1``. That is 2s - 1 if the reward
    was only the score. An illegal action still costs 0.01, so that an episode's return is 2s - 1 less 0.01
    for each illegal action, and a forfeit's last step pays -1.01. Every other step keeps its reward.

    A truncated episode pays nothing at its end. A cut by ``max_turns`` has no outcome to centre: a learner
    that bootstraps adds the position's value to 0 and not to a loss, and one that does not sees a draw. A
    fault is nobody's doing. An episode that is over at reset pays nothing, as without this wrapper: its score
    is in the info.
    """

    def __init__(self, env: gym.Env[Any, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Info]:
        """Steps the wrapped environment, and centres the score if the episode terminates."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        paid = float(reward)
        if terminated:
            paid += info["score"] - 1.0
        return observation, paid, terminated, truncated, info
