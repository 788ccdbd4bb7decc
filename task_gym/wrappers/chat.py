"""The wrapper that makes an episode one conversation, and the texts that carry it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from operator import index
from typing import Any, Self

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from task_gym.replies import ReplyText, visible
from task_gym.wrappers.base import Info, TurnWrapper, check_text
from task_gym.wrappers.common import NamedText

Message = dict[str, str]
Chat = tuple[Message, ...]


def make_chat(system: str | None, earlier: Sequence[tuple[str, str]], question: str) -> Chat:
    """Returns a conversation: a system message, if there is one, questions and answers, and a question."""
    head = () if system is None else (("system", system),)
    messages = [message for turn in earlier for message in zip(("user", "assistant"), turn, strict=True)]
    # New dictionaries each time: the caller may change an observation.
    return tuple(
        {"role": role, "content": content} for role, content in (*head, *messages, ("user", question))
    )


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


class Conversation(TurnWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Makes the episode one conversation: each observation carries all that was said before it.

    A user's message per turn is the text of the turn. An illegal action is an answer like any other: the next
    user's message is ``info["error"]["message"]``, an empty line and the text. The assistant's message is
    what the caller answered: the action's id, its name if the observation has names, or the reply as
    ``task_gym.replies.visible`` leaves it, without reasoning. With open seats every seat has its own
    conversation. ``info["text"]`` has only this turn's text.

    Observations stay texts, as ``ConversationText``: this turn's text, with the conversation beside it as
    ``messages``, which a chat template takes. ``LLMPolicy`` reads it in the place of the text alone.

    It goes outside all wrappers that change the text.

    Args:
        env: An environment with text observations.

    Raises:
        ArgumentError: the observations are no texts.
    """

    def __init__(self, env: gym.Env[str, Any]) -> None:
        super().__init__(env)
        check_text(self)
        # The questions and answers of each seat, in order.
        self._turns: dict[Hashable, list[tuple[str, str]]] = {}
        self._asked: tuple[Hashable, str] = (None, "")
        self._names: tuple[str, ...] = ()
        self._mask: NDArray[np.int8] = np.zeros(0, dtype=np.int8)

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[ConversationText, Info]:
        """Begins an episode and a conversation."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._turns = {}
        return self.show(observation, info)

    def step(self, action: Any) -> tuple[ConversationText, Any, bool, bool, Info]:
        """Steps the wrapped environment; the action is the answer to the last observation."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        seat, question = self._asked
        self._turns.setdefault(seat, []).append((question, self.write_answer(action)))
        shown, info = self.show(observation, info)
        return shown, reward, terminated, truncated, info

    def show(self, observation: str, info: Info) -> tuple[ConversationText, Info]:
        """Returns the text with the conversation of the seat to move, and the info with the text alone."""
        self._names = observation.names if isinstance(observation, NamedText) else ()
        self._mask = info["action_mask"] if self._names else self._mask
        question = self.write_question(observation, info)
        seat = info.get("seat")
        self._asked = (seat, question)
        chat = make_chat(self.write_system(), self._turns.get(seat, ()), question)
        return ConversationText(question, chat, self._names), {**info, "text": observation}

    def write_question(self, observation: str, info: Info) -> str:
        """Returns the user's message of a turn: why the last answer was illegal, if it was, and the text."""
        error = info.get("error")
        return observation if error is None else f"{error['message']}\n\n{observation}"

    def write_answer(self, action: Any) -> str:
        """Returns the assistant's message of an action."""
        if isinstance(action, str):
            text = visible(action)
            return ReplyText(text, action.tokens) if isinstance(action, ReplyText) else text
        if self._names and 0 <= action < len(self._mask) and self._mask[action]:
            return self._names[int(self._mask[:action].sum())]
        return str(index(action))

    def write_system(self) -> str | None:
        """Returns the system message of the episode; here there is none."""
        return None
