"""Games for TRL: an environment whose method ``play`` is the tool that a model calls."""

from __future__ import annotations

from typing import Any

from game_gym.env import GameSpielEnv


class GameSpielTRL:
    """One game after the other, as ``GRPOTrainer(environment_factory=…)`` takes them.

    TRL makes the environments itself: give it ``functools.partial(GameSpielTRL, game="leduc_poker")``. The
    reward is the score, less 0.01 per illegal action; a game that is not played to its end is worth 0.

    Args:
        **arguments: Those of ``GameSpiel-v0``.
    """

    def __init__(self, **arguments: Any) -> None:
        self._env = GameSpielEnv(**arguments)
        self._reward = 0.0
        self._over = False  # already at the reset: its score is paid there, and not again for a step

    def reset(self, seed: int | None = None, task_id: int | None = None, **columns: Any) -> str:
        """Begins a game; returns its first observation, which TRL appends to the prompt.

        Args:
            seed: The seed of the game, if the data set has such a column.
            task_id: The task, if the data set has such a column.
            **columns: Other columns, which are not looked at.
        """
        options = None if task_id is None else {"task_id": task_id}
        text, info = self._env.reset(seed=seed, options=options)
        self._reward = float(info.get("score") or 0.0)
        self._over = "result" in info
        return text

    def play(self, action: int) -> str:
        """Plays an action and shows what follows.

        Args:
            action: The number of a legal action.

        Returns:
            The next position with its legal actions, or the result of the game.
        """
        text, reward, _, _, info = self._env.step(action)
        self._reward += 0.0 if self._over else reward
        return f"{info['error']['message']}\n\n{text}" if "error" in info else text

    def get_reward(self) -> float:
        """Returns the reward of the game so far."""
        return self._reward
