"""The wrapper that shows the episode as a conversation to a policy that reads tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import gymnasium as gym
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from task_gym.replies import ReplyText, visible
from task_gym.wrappers.base import Info
from task_gym.wrappers.chat import Chat, ConversationWrapper, make_chat
from task_gym.wrappers.named import NamedText


class ConversationText(NamedText):
    """The text of a turn that carries the conversation which it continues.

    It is equal to the same text without a conversation, and pickles and copies with it. Slices and joins of
    it have none.

    Args:
        text: The text of this turn, which is the last message of the conversation.
        messages: The conversation so far: ``{"role", "content"}`` each, this turn's last. The content of an
            assistant's message is a ``task_gym.replies.ReplyText`` if its tokens are known.
        names: As for ``NamedText``.
    """

    messages: Chat

    def __new__(cls, text: str, messages: Chat = (), names: Sequence[str] = ()) -> Self:
        self = super().__new__(cls, text, names)
        self.messages = messages
        return self


class Conversation(ConversationWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Makes the episode one conversation: each observation carries all that was said before it.

    A user's message per turn is the text of the turn, after an illegal action with the reason before it. The
    assistant's is what the caller answered: the action's id, its name if the observation has names, or the
    reply as ``task_gym.replies.visible`` leaves it, without reasoning. With open seats every seat has its
    own conversation.

    Observations stay texts, as ``ConversationText``: this turn's text, with the conversation beside it, which
    ``LLMPolicy`` reads in the place of the text alone. ``ChatObservation`` gives the messages themselves.

    It goes outside all wrappers that change the text.

    Args:
        env: An environment with text observations.

    Raises:
        ArgumentError: the observations are no texts.
    """

    def __init__(self, env: gym.Env[str, Any]) -> None:
        RecordConstructorArgs.__init__(self)
        super().__init__(env)
        self._names: tuple[str, ...] = ()
        self._mask: NDArray[np.int8] = np.zeros(0, dtype=np.int8)

    def show(self, observation: str, info: Info) -> tuple[ConversationText, Info]:
        """Returns the text with the conversation of the seat to move, and the info with the text alone."""
        self._names = observation.names if isinstance(observation, NamedText) else ()
        self._mask = info["action_mask"] if self._names else self._mask
        shown: tuple[ConversationText, Info] = super().show(observation, info)
        return shown

    def write_answer(self, action: Any) -> str:
        """Returns the assistant's message of an action."""
        if isinstance(action, str):
            said = visible(action)
            return ReplyText(said, action.tokens) if isinstance(action, ReplyText) else said
        if self._names and 0 <= action < len(self._mask) and self._mask[action]:
            return self._names[int(self._mask[:action].sum())]
        return super().write_answer(action)

    def write_system(self) -> str | None:
        """Returns the system message of the episode; here there is none."""
        return None

    def show_turns(self, earlier: Sequence[tuple[str, str]], question: str) -> ConversationText:
        """Returns the question with the conversation."""
        return ConversationText(question, make_chat(self.write_system(), earlier, question), self._names)
