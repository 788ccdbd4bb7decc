"""The wrapper that shows the episode as a chat template takes it, and what it has in common with others."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from operator import index
from reprlib import repr as shortened
from string import ascii_lowercase
from typing import Any, Self

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from task_gym.arguments import is_whole
from task_gym.errors import ArgumentError, TaskGymError, TokenError, shown
from task_gym.replies import ReplyText, visible
from task_gym.spaces import UnicodeText
from task_gym.wrappers.base import Info, TurnWrapper, check_text
from task_gym.wrappers.common import NamedText

Message = dict[str, str]
Chat = tuple[Message, ...]

MESSAGE_LENGTH = 1 << 21
"""The most characters that a message may have: more than any observation or reply has."""

# Probes for ``count``: every tokenizer needs more tokens for the second.
_SHORTER, _LONGER = "0", "0 1 2 3 4 5 6 7 8 9"

_COUNTS = (
    'allowed: a function from a conversation, a tuple of {"role": ..., "content": ...}, to its number of '
    "tokens, a whole number from 0; for example "
    "lambda chat: len(tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False))"
)


class ConversationWrapper(TurnWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """A wrapper that keeps an episode's questions and answers, those of each seat on their own.

    Args:
        env: An environment with text observations.

    Raises:
        ArgumentError: the observations are no texts.
    """

    def __init__(self, env: gym.Env[str, Any], **arguments: Any) -> None:
        super().__init__(env, **arguments)
        check_text(self)
        # The questions and answers of each seat, in order.
        self._turns: dict[Hashable, list[tuple[str, str]]] = {}
        self._asked: tuple[Hashable, str] = (None, "")

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Any, Info]:
        """Begins an episode and a conversation."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._turns = {}
        return self.show(observation, info)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Info]:
        """Steps the wrapped environment; the action is the answer to the last observation."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        seat, question = self._asked
        self._turns.setdefault(seat, []).append((question, self.write_answer(action)))
        shown, info = self.show(observation, info)
        return shown, reward, terminated, truncated, info

    def show(self, observation: str, info: Info) -> tuple[Any, Info]:
        """Returns the conversation of the seat to move, and the info with the text."""
        question = self.write_question(observation, info)
        seat = info.get("seat")
        self._asked = (seat, question)
        return self.show_turns(self._turns.get(seat, ()), question), {**info, "text": observation}

    def write_question(self, observation: str, info: Info) -> str:
        """Returns the user's message of a turn: why the last answer was illegal, if it was, and the text."""
        error = info.get("error")
        return observation if error is None else f"{error['message']}\n\n{observation}"

    def write_answer(self, action: Any) -> str:
        """Returns the assistant's message of an action: the action's id, or the reply."""
        return action if isinstance(action, str) else str(index(action))

    def show_turns(self, earlier: Sequence[tuple[str, str]], question: str) -> Any:
        """Returns the observation: a seat's earlier questions and answers, and the question of this turn."""
        raise NotImplementedError


class ChatObservation(ConversationWrapper, gym.Wrapper[Any, Any, Any, Any]):
    """Replaces a text observation by the conversation so far, as a chat template takes it.

    The observation is a tuple of ``{"role", "content"}``: the system message, if there is one; for each
    earlier turn of this episode the user's message (the observation) and the assistant's (the action's id, or
    the reply if the environment takes text); last the user's message of this turn. ``info["text"]`` has only
    this turn's text.

    An illegal action is part of the conversation: it is an answer like any other. The next user message is
    ``info["error"]["message"]``, an empty line and the observation.

    With open seats every seat has its own conversation. The observation is that of ``info["seat"]``, with
    what this seat saw and answered.

    Args:
        env: An environment with text observations.
        system: The system message; None for no such message.
        turns: How many earlier turns to show, the latest ones; 0 for only this turn, None for all.
        budget: The most tokens of a conversation. Whole turns are left out, the oldest first, until it fits;
            the system message and this turn always stay.
        count: Conversation (a tuple of messages, not a text) to its number of tokens, with all that a chat
            template adds to it. Without the oldest turn it must not be more. It is given with
            ``budget``, and only then. With a tokenizer of transformers::

                lambda chat: len(
                    tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=False)
                )

            It is tried at once on two conversations of one short message each. An exception that it raises in
            an episode goes to the caller as it is.

    Raises:
        ArgumentError: a number is below what is allowed, the system message is no text, one of ``budget`` and
            ``count`` is given without the other, the observations are no texts, or ``count`` fails on a short
            conversation, returns no whole number from 0, or does not count more for a longer message.
        TokenError: the system message and this turn alone have more tokens than the budget.
    """

    def __init__(
        self,
        env: gym.Env[str, Any],
        system: str | None = None,
        turns: int | None = None,
        budget: int | None = None,
        count: Callable[[Chat], int] | None = None,
    ) -> None:
        # Not copied: the function can hold a large tokenizer.
        super().__init__(env, _disable_deepcopy=True, system=system, turns=turns, budget=budget, count=count)
        for name, value, least in (("turns", turns, 0), ("budget", budget, 1)):
            if value is not None and (not is_whole(value) or value < least):
                raise ArgumentError(f"{name}: {shown(value)} was given, allowed: None, {least} or more")
        if system is not None and not isinstance(system, str):
            raise ArgumentError(f"system: {shown(system)} was given, allowed: None or a text")
        if (budget is None) != (count is None):
            given, missing = ("budget", "count") if count is None else ("count", "budget")
            raise ArgumentError(f"{given}: it was given without {missing}, allowed: both or neither")
        self._system = system
        self._window, self._budget, self._count = turns, budget, count
        if count is not None:
            self._try(count)
        self.observation_space = gym.spaces.Sequence(
            gym.spaces.Dict(
                {
                    "role": gym.spaces.Text(9, min_length=4, charset=ascii_lowercase),
                    "content": UnicodeText(MESSAGE_LENGTH),
                }
            )
        )

    def show_turns(self, earlier: Sequence[tuple[str, str]], question: str) -> Chat:
        """Returns the conversation, without the turns that are too early or do not fit."""
        if self._window is not None:
            earlier = earlier[max(len(earlier) - self._window, 0) :]
        return self._fit(earlier, question)

    def _try(self, count: Callable[[Chat], int]) -> None:
        """Raises ArgumentError unless ``count`` counts tokens of conversations."""
        try:
            sizes = [_size(count, self._chat([], text)) for text in (_SHORTER, _LONGER)]
        except TaskGymError:
            raise
        except Exception as error:
            raise ArgumentError(
                f"count: it raised {type(error).__name__} ({error}) for the conversation "
                f"{shortened(self._chat([], _SHORTER))}, {_COUNTS}"
            ) from error
        # Catches len, which counts messages, or the two fields that apply_chat_template returns by default.
        if sizes[0] >= sizes[1]:
            raise ArgumentError(
                f"count: it returned {sizes[0]} for a message {_SHORTER!r} and {sizes[1]} for {_LONGER!r}, "
                f"which counts no tokens, {_COUNTS}"
            )

    def _fit(self, earlier: Sequence[tuple[str, str]], question: str) -> Chat:
        """Returns the longest conversation that fits the budget."""
        count, budget = self._count, self._budget
        if count is None or budget is None:
            return self._chat(earlier, question)
        dropped = bisect_left(
            range(len(earlier) + 1),
            True,
            key=lambda n: _size(count, self._chat(earlier[n:], question)) <= budget,
        )
        if dropped > len(earlier):
            least = _size(count, self._chat([], question))
            raise TokenError(
                f"observation of {least} tokens, system message included, was given, allowed: "
                f"budget={budget}; it begins {question[:60]!r}"
            )
        return self._chat(earlier[dropped:], question)

    def _chat(self, earlier: Sequence[tuple[str, str]], question: str) -> Chat:
        return make_chat(self._system, earlier, question)


def make_chat(system: str | None, earlier: Sequence[tuple[str, str]], question: str) -> Chat:
    """Returns a conversation: a system message, if there is one, questions and answers, and a question."""
    head = () if system is None else (("system", system),)
    messages = [message for turn in earlier for message in zip(("user", "assistant"), turn, strict=True)]
    # New dictionaries each time: the caller may change an observation.
    return tuple(
        {"role": role, "content": content} for role, content in (*head, *messages, ("user", question))
    )


def _size(count: Callable[[Chat], int], chat: Chat) -> int:
    """Returns the conversation's tokens, or raises ArgumentError unless ``count`` returns a number from 0."""
    size: Any = count(chat)
    try:
        # A bool passes index() too, but it is a predicate's answer.
        tokens = -1 if isinstance(size, bool) else index(size)
    except TypeError:
        tokens = -1
    if tokens < 0:
        raise ArgumentError(f"count: it returned {shortened(size)} ({type(size).__name__}), {_COUNTS}")
    return tokens


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
            text = visible(action)
            return ReplyText(text, action.tokens) if isinstance(action, ReplyText) else text
        if self._names and 0 <= action < len(self._mask) and self._mask[action]:
            return self._names[int(self._mask[:action].sum())]
        return super().write_answer(action)

    def write_system(self) -> str | None:
        """Returns the system message of the episode; here there is none."""
        return None

    def show_turns(self, earlier: Sequence[tuple[str, str]], question: str) -> ConversationText:
        """Returns the question with the conversation."""
        return ConversationText(question, make_chat(self.write_system(), earlier, question), self._names)
