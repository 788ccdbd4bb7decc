"""The wrappers that the ``env`` section asks for: opponents, a reward, reasoning, and replies by name."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from gamespiel.errors import InvalidValueError
from gamespiel.kinds.games.keys import GameKeys, seat_name
from task_gym.replies import strip_reasoning
from task_gym.rewards import find_reward
from task_gym.wrappers import NamedActions, NamedText
from task_gym.wrappers.base import Info, TurnWrapper

THINK = "Reason first, between <think> and </think>. What follows is your answer."
"""The line with which ``env.think`` asks for reasoning."""


def wrap_game(env: GameKeys, gym_env: gym.Env[Any, Any]) -> gym.Env[Any, Any]:
    """Returns a game in the wrappers of a mixture of opponents and of a registered reward, if it has them.

    Raises:
        InvalidValueError: what was registered returns no environment.
    """
    if not isinstance(env.opponent, str):
        from game_gym.wrappers import MixedOpponents

        gym_env = MixedOpponents(gym_env, {seat_name(name): w for name, w in env.opponent.items()})
    wrap = find_reward(env.reward)
    if wrap is None:
        return gym_env
    outer: gym.Env[Any, Any] = wrap(gym_env)
    if getattr(outer, "unwrapped", None) is not gym_env.unwrapped:
        raise InvalidValueError(
            f"env.reward {env.reward!r} returned {outer!r}, needed: the environment that it was given, in a "
            "wrapper"
        )
    return outer


class Thinking(TurnWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Asks for reasoning before the answer, in a line before the question that ends an observation.

    The environment's own rule finds the answer: it has to leave out what is between the tags.
    """

    def show(self, observation: str, info: Info) -> tuple[str, Info]:
        """Returns the text with the line, and the info as it is; the text after the end stays."""
        if "result" in info:
            return observation, info
        state, line_end, question = observation.rpartition("\n")
        text = f"{state}{line_end}{THINK}\n{question}"
        return NamedText(text, observation.names) if isinstance(observation, NamedText) else text, info


class NamedReplies(NamedActions, gym.Wrapper[Any, Any, Any, Any]):
    """Asks for an action's name, and reads a reply that is one as that action.

    Any other reply is left to the environment's own rule. That rule looks for numbers first: on its own it
    would read the name "x(1,1)" in tic_tac_toe as action 1.
    """

    def show(self, observation: str, info: Info) -> tuple[NamedText, Info]:
        """Returns the text with its names, which the next reply may be."""
        text, info = super().show(observation, info)
        names = (name.strip() for name in text.names)
        self._actions = dict(zip(names, info["legal_actions"], strict=True))
        return text, info

    def step(self, action: str) -> tuple[Any, Any, bool, bool, Info]:
        """Gives the environment the number of the action that the reply is the name of, else the reply.

        Where the legal actions are not listed, its own rule reads names, and no numbers.
        """
        game: Any = self.unwrapped
        if not game.list_actions:
            return super().step(action)
        named = self._actions.get(strip_reasoning(action))
        return super().step(action if named is None else str(named))
