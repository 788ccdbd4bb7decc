"""Conversation: texts that carry what was said before."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from task_gym.replies import ReplyText
from task_gym.spaces import UnicodeText
from task_gym.wrappers import Conversation, ConversationText, NamedText
from task_gym.wrappers.chat import Chat
from tests.task_gym.scripts import Script, turn


def contents(chat: Chat) -> list[str]:
    """The conversation in short, as "u:text"."""
    return [f"{message['role'][0]}:{message['content']}" for message in chat]


LONG = [turn(text) for text in "abcde"]


def last_text(env: Any, *actions: Any) -> ConversationText:
    """The last observation after these actions."""
    text, _ = env.reset()
    for action in actions:
        text, *_ = env.step(action)
    assert isinstance(text, ConversationText) and env.observation_space.contains(text)
    return text


def test_an_illegal_action_and_what_was_said_of_it_belong_to_the_conversation() -> None:
    error = {"type": "invalid_action", "message": "action: 7 was given, legal: 0, 2"}
    env = Conversation(Script(turn("a"), turn("a", -0.01, error=error), turn("b")))
    said = contents(last_text(env, 7, np.int64(2)).messages)
    assert said == ["u:a", "a:7", "u:action: 7 was given, legal: 0, 2\n\na", "a:2", "u:b"]
    env.reset()
    assert env.step(7)[-1]["text"] == "a"


def test_an_action_that_raises_is_not_said() -> None:
    class Strict(Script):
        def step(self, action: Any) -> Any:
            if action % 2:
                raise ValueError("odd")
            return super().step(action)

    env = Conversation(Strict(*LONG))
    env.reset()
    with pytest.raises(ValueError, match="odd"):
        env.step(1)
    assert contents(env.step(2)[0].messages) == ["u:a", "a:2", "u:b"]


def test_every_seat_has_its_own_conversation() -> None:
    steps = [turn("a", seat=0), turn("b", seat=1), turn("c", seat=0), turn("d", seat=1), turn("e", seat=1)]
    env = Conversation(Script(*steps))
    assert contents(last_text(env, 2).messages) == ["u:b"]
    assert contents(last_text(env, 2, 4).messages) == ["u:a", "a:2", "u:c"]
    assert contents(last_text(env, 2, 4, 6).messages) == ["u:b", "a:4", "u:d"]
    assert contents(last_text(env, 2, 4, 6, 8).messages) == ["u:b", "a:4", "u:d", "a:8", "u:e"]


def test_messages_of_earlier_texts_stay_as_they_were() -> None:
    env = Conversation(Script(*LONG))
    first = last_text(env, 0)
    snapshot = copy.deepcopy(first.messages)
    second = env.step(0)[0]
    second.messages[1]["content"] = "changed by whoever holds it"
    assert env.step(0)[0].messages[1]["content"] == "0" and first.messages == snapshot


def test_a_reply_keeps_its_tokens_and_loses_its_reasoning() -> None:
    class Replies(Script):
        action_space = UnicodeText(100)

        def step(self, action: Any) -> Any:
            return super().step(4)

    env = Conversation(Replies(*LONG))
    reply = ReplyText("<think>4 or 2?</think> 4\n", (9, 8, 7))
    said = last_text(env, reply, " 5 ").messages
    assert contents(said) == ["u:a", "a:4", "u:b", "a:5", "u:c"]
    assert said[1]["content"].tokens == (9, 8, 7)
    assert not isinstance(said[3]["content"], ReplyText)


def test_an_action_with_a_name_is_answered_by_name() -> None:
    class Named(gym.ObservationWrapper[Any, Any, Any]):
        def observation(self, observation: str) -> NamedText:
            return NamedText(observation, ["Fold", "Call", "Raise", "Bet", "Check"])

    env = Conversation(Named(Script(*LONG)))
    text, info = env.reset()
    assert text.names == ("Fold", "Call", "Raise", "Bet", "Check")
    assert info["action_mask"].tolist() == [1, 0] * 5
    assert contents(last_text(env, 2, np.int64(8)).messages) == ["u:a", "a:Call", "u:b", "a:Check", "u:c"]
    assert contents(last_text(env, 3).messages)[1] == "a:3"  # illegal, so it has no name


@pytest.mark.parametrize("carry", [copy.deepcopy, copy.copy, lambda text: pickle.loads(pickle.dumps(text))])
def test_texts_are_carried_with_what_they_carry(carry: Any) -> None:
    chat = ({"role": "assistant", "content": ReplyText("4", (1, 2))}, {"role": "user", "content": "b"})
    text = carry(ConversationText("b", chat, ["x"]))
    assert text == "b" and text.messages == chat and text.names == ("x",)
    assert text.messages[0]["content"].tokens == (1, 2)
