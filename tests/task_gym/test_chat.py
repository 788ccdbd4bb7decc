"""ChatObservation: the episode as a conversation. Conversation: texts that carry it."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from task_gym.errors import ArgumentError, TokenError
from task_gym.replies import ReplyText
from task_gym.spaces import UnicodeText
from task_gym.wrappers import ChatObservation, Conversation, ConversationText, DictObservation, NamedText
from task_gym.wrappers.chat import Chat
from tests.task_gym.scripts import Script, turn


def contents(chat: Chat) -> list[str]:
    """The conversation in short, as "u:text"."""
    return [f"{message['role'][0]}:{message['content']}" for message in chat]


def words(chat: Chat) -> int:
    return sum(len(message["content"].split()) for message in chat)


LONG = [turn(text) for text in "abcde"]


def play(env: Any, *actions: Any) -> list[str]:
    """The last conversation after these actions."""
    chat, _ = env.reset()
    for action in actions:
        chat, *_ = env.step(action)
    return contents(chat)


def test_the_whole_conversation() -> None:
    env = ChatObservation(Script(*LONG), system="Be brief.")
    chat, info = env.reset(seed=0)
    assert chat == ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "a"})
    assert info["text"] == "a"
    chat, *_, info = env.step(4)
    assert chat == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "4"},
        {"role": "user", "content": "b"},
    )
    assert info["text"] == "b" and info["action_mask"].sum() == 5
    assert env.action_masks().sum() == 5


@pytest.mark.parametrize(
    ("limits", "shown"),
    [
        ({"turns": 0}, ["s:S S", "u:d"]),
        ({"turns": 1}, ["s:S S", "u:c", "a:4", "u:d"]),
        ({"turns": 9}, ["s:S S", "u:a", "a:0", "u:b", "a:2", "u:c", "a:4", "u:d"]),
        # Words: 2 of the system message, 1 of this turn, 2 for each turn before it.
        ({"budget": 9}, ["s:S S", "u:a", "a:0", "u:b", "a:2", "u:c", "a:4", "u:d"]),
        ({"budget": 8}, ["s:S S", "u:b", "a:2", "u:c", "a:4", "u:d"]),
        ({"budget": 3}, ["s:S S", "u:d"]),
    ],
)
def test_the_latest_turns_that_fit_are_shown(limits: dict[str, int], shown: list[str]) -> None:
    count = words if "budget" in limits else None
    assert play(ChatObservation(Script(*LONG), system="S S", count=count, **limits), 0, 2, 4) == shown  # type: ignore[arg-type]


def test_a_turn_that_alone_exceeds_the_budget_is_an_error() -> None:
    env = ChatObservation(Script(turn("one two"), turn("one two three")), system="S", budget=3, count=words)
    assert play(env) == ["s:S", "u:one two"]
    with pytest.raises(TokenError, match=r"4 tokens, .* allowed: budget=3; .*'one two th"):
        env.step(0)


def test_an_illegal_action_and_what_was_said_of_it_belong_to_the_conversation() -> None:
    error = {"type": "invalid_action", "message": "action: 7 was given, legal: 0, 2"}
    env = ChatObservation(Script(turn("a"), turn("a", -0.01, error=error), turn("b")))
    assert play(env, 7, 2) == ["u:a", "a:7", "u:action: 7 was given, legal: 0, 2\n\na", "a:2", "u:b"]
    env.reset()
    assert env.step(7)[-1]["text"] == "a"


def test_an_action_that_raises_is_not_said() -> None:
    class Strict(Script):
        def step(self, action: Any) -> Any:
            if action % 2:
                raise ValueError("odd")
            return super().step(action)

    env = ChatObservation(Strict(*LONG))
    env.reset()
    with pytest.raises(ValueError, match="odd"):
        env.step(1)
    assert contents(env.step(2)[0]) == ["u:a", "a:2", "u:b"]


def test_every_seat_has_its_own_conversation() -> None:
    steps = [turn("a", seat=0), turn("b", seat=1), turn("c", seat=0), turn("d", seat=1), turn("e", seat=1)]
    env = ChatObservation(Script(*steps), turns=1)
    assert play(env, 2) == ["u:b"]
    assert play(env, 2, 4) == ["u:a", "a:2", "u:c"]
    assert play(env, 2, 4, 6) == ["u:b", "a:4", "u:d"]
    assert play(env, 2, 4, 6, 8) == ["u:d", "a:8", "u:e"]


def test_observations_are_in_the_space_and_stay_as_they_were() -> None:
    env = ChatObservation(Script(*LONG), system="♠")
    first, _ = env.reset()
    kept = copy.deepcopy(first)
    second, *_ = env.step(0)
    second[1]["content"] = "changed by whoever holds it"
    third, *_ = env.step(0)
    assert first == kept and third[1]["content"] == "a"
    space = env.observation_space
    assert first in space and second in space and third in space
    assert all(space.sample() in space for _ in range(20))
    assert list(third) not in space and ({"role": "user"},) not in space
    assert DictObservation(env).reset()[0] in DictObservation(env).observation_space


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"turns": -1}, "turns: -1 was given, allowed: None, 0 or more"),
        ({"turns": "4"}, "turns: '4' was given"),
        ({"system": 5}, "system: 5 was given, allowed: None or a text"),
        ({"budget": 5}, "budget: it was given without count, allowed: both or neither"),
        ({"count": words}, "count: it was given without budget"),
    ],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        ChatObservation(Script(*LONG), **arguments)


@pytest.mark.parametrize(
    ("count", "message"),
    [
        # Made for a text: a conversation is a tuple of dictionaries.
        (lambda text: len(text.split()), "it raised AttributeError .*no attribute 'split'"),
        (5, r"it raised TypeError \('int' object is not callable\)"),
        # One message each, whatever is said in it; one more with a system message.
        (len, "it returned 2 for a message '0' and 2 for '0 1 2 3 4 5 6 7 8 9', which counts no tokens"),
        (lambda chat: None, r"it returned None \(NoneType\)"),
        (lambda chat: words(chat) < 5, r"it returned True \(bool\)"),
        (lambda chat: -words(chat), r"it returned -2 \(int\)"),
    ],
)
def test_a_count_of_something_else_is_named_at_once(count: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=f"count: {message}.*allowed: a function from a conversation"):
        ChatObservation(Script(*LONG), system="S", budget=100, count=count)


# -- Conversation: texts that carry what was said before ---------------------------------------------------


def last_text(env: Any, *actions: Any) -> ConversationText:
    """The last observation after these actions."""
    text, _ = env.reset()
    for action in actions:
        text, *_ = env.step(action)
    assert isinstance(text, ConversationText) and env.observation_space.contains(text)
    return text


def test_an_observation_is_its_turn_and_carries_the_turns_before() -> None:
    env = Conversation(Script(*LONG))
    text = last_text(env, 4, np.int64(2))
    assert text == "c" and contents(text.messages) == ["u:a", "a:4", "u:b", "a:2", "u:c"]
    assert contents(last_text(env, 6).messages) == ["u:a", "a:6", "u:b"]


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
