"""Conversation: texts that carry what was said before."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from task_gym.errors import ArgumentError
from task_gym.replies import ReplyText
from task_gym.spaces import UnicodeText
from task_gym.wrappers import Conversation, ConversationText, DictObservation, NamedText
from tests.task_gym.scripts import Script, turn
from tests.task_gym.test_chat import contents

LONG = [turn(text) for text in "abcde"]


def play(env: Any, *actions: Any) -> ConversationText:
    """The last observation after these actions."""
    text, _ = env.reset()
    for action in actions:
        text, *_ = env.step(action)
    assert isinstance(text, ConversationText) and env.observation_space.contains(text)
    return text


def test_an_observation_is_its_turn_and_carries_the_turns_before() -> None:
    env = Conversation(Script(*LONG))
    text = play(env, 4, np.int64(2))
    assert text == "c" and contents(text.messages) == ["u:a", "a:4", "u:b", "a:2", "u:c"]
    assert contents(play(env, 6).messages) == ["u:a", "a:6", "u:b"]


def test_a_reply_keeps_its_tokens_and_loses_its_reasoning() -> None:
    class Replies(Script):
        action_space = UnicodeText(100)

        def step(self, action: Any) -> Any:
            return super().step(4)

    env = Conversation(Replies(*LONG))
    reply = ReplyText("<think>4 or 2?</think> 4\n", (9, 8, 7))
    said = play(env, reply, " 5 ").messages
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
    assert contents(play(env, 2, np.int64(8)).messages) == ["u:a", "a:Call", "u:b", "a:Check", "u:c"]
    assert contents(play(env, 3).messages)[1] == "a:3"  # illegal, so it has no name


@pytest.mark.parametrize("carry", [copy.deepcopy, copy.copy, lambda text: pickle.loads(pickle.dumps(text))])
def test_texts_are_carried_with_what_they_carry(carry: Any) -> None:
    chat = ({"role": "assistant", "content": ReplyText("4", (1, 2))}, {"role": "user", "content": "b"})
    text = carry(ConversationText("b", chat, ["x"]))
    assert text == "b" and text.messages == chat and text.names == ("x",)
    assert text.messages[0]["content"].tokens == (1, 2)


def test_other_observations_are_refused() -> None:
    with pytest.raises(ArgumentError, match="Conversation: an environment with observations in Dict"):
        Conversation(DictObservation(Script(*LONG)))
