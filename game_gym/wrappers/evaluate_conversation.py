"""The wrapper that shows a game as the conversation in which upstream's ``evaluate`` plays it."""

from __future__ import annotations

from typing import Any

import gymnasium as gym

from game_gym.conversation import TRIES, refusal_message, system_message, turn_message
from game_gym.wrappers.base import game_env
from task_gym.errors import ArgumentError
from task_gym.wrappers import Conversation
from task_gym.wrappers.base import Info


class EvaluateConversation(Conversation, gym.Wrapper[Any, Any, Any, Any]):
    """Makes a game the conversation of protocol "evaluate": what a model behind an endpoint is shown.

    The system message has the game, its rules and what to answer, and each user's message the state, the seat
    and the legal actions. After a reply that names no legal action the message is a refusal, without the
    state. With the environment variable ``OPENSPIEL_AGENTS_PATH`` the words are upstream's own.

    Args:
        env: GameSpiel-v0 or GameSpielText-v0 with ``seeding="evaluate"`` on the local backend, in wrappers
            that leave the text as it is.

    Raises:
        ArgumentError: another environment was given.
    """

    def __init__(self, env: gym.Env[str, Any]) -> None:
        super().__init__(env)
        self._game = game_env(self)
        self._tried = 0
        if self._game.seeding != "evaluate" or not self._game.is_local:
            raise ArgumentError(
                f"EvaluateConversation: {self._game} with seeding={self._game.seeding!r} was given, allowed: "
                'seeding="evaluate" and the local backend'
            )

    def write_question(self, observation: str, info: Info) -> str:
        """Returns the user's message of a turn; a closing text stays as it is."""
        if "result" in info and not info["legal_actions"]:
            return observation
        game, turn = self._game, self._game.turn
        assert turn is not None
        if "error" in info:
            self._tried = self._tried % TRIES + 1
            return refusal_message(game.variant, self._tried, list_actions=game.list_actions)["content"]
        self._tried = 0
        return turn_message(
            game.variant, game.state, turn.seat, turn.legal, turn.names, list_actions=game.list_actions
        )["content"]

    def write_system(self) -> str | None:
        """Returns the system message of the game being played."""
        return system_message(self._game.variant, list_actions=self._game.list_actions)["content"]
