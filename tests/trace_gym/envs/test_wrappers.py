"""Tests of task_gym's wrappers on the trace environments."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from task_gym.wrappers import ChatObservation, DictObservation, TokenObservation, ZeroCentredReward
from tests.trace_gym.play import IDS, oracle

CHOICE, LINES = "CodeTraceChoice-v0", "CodeTraceLines-v0"

LENGTH = 8192
"""Bytes of an observation of level 1, at most."""


def utf8(text: str) -> list[int]:
    return list(text.encode())


@pytest.mark.parametrize("name", IDS)
def test_tokens(name: str) -> None:
    env = TokenObservation(gym.make(name, level=1), utf8, length=LENGTH, vocab_size=256, pad_id=256)
    ids, info = env.reset(seed=3)
    over = False
    while True:
        assert ids in env.observation_space
        assert bytes(ids[ids < 256].astype(np.uint8)).decode() == info["text"]
        if over:
            break
        ids, _, over, _, info = env.step(oracle(env.unwrapped))
    assert info["score"] == 1.0
    env.close()


def test_chat_holds_the_lines_that_were_answered() -> None:
    env: Any = ChatObservation(gym.make(LINES, task_id=0), system="Trace.", turns=1)
    chat, info = env.reset(seed=0)
    assert chat == ({"role": "system", "content": "Trace."}, {"role": "user", "content": info["text"]})
    first = info["text"]
    chat, _, over, _, info = env.step("my guess")
    assert not over and chat in env.observation_space
    assert [message["role"] for message in chat] == ["system", "user", "assistant", "user"]
    assert [message["content"] for message in chat[1:]] == [first, "my guess", info["text"]]
    env.close()


def test_chat_tells_an_illegal_choice() -> None:
    env: Any = ChatObservation(gym.make(CHOICE, task_id=0))
    _, info = env.reset(seed=0)
    chat, *_, info = env.step(8)
    assert chat[1] == {"role": "assistant", "content": "8"}
    assert chat[2]["content"] == f"{info['error']['message']}\n\n{info['text']}"
    env.close()


def test_the_mask_beside_the_observation() -> None:
    env: Any = DictObservation(gym.make(CHOICE, task_id=0))
    shown, info = env.reset(seed=0)
    assert shown in env.observation_space and shown["action_mask"].tolist() == info["action_mask"].tolist()
    shown, *_ = env.step(0)
    assert not shown["action_mask"].any()
    env.close()


def test_tokens_inside_a_dictionary_and_rewards_about_zero() -> None:
    tokens = TokenObservation(gym.make(CHOICE, level=1), utf8, length=LENGTH, vocab_size=256, pad_id=256)
    env: Any = ZeroCentredReward(DictObservation(tokens))
    shown, info = env.reset(seed=5)
    assert shown in env.observation_space and env.action_masks().sum() == len(info["legal_actions"])
    *_, info = done = env.step(oracle(env.unwrapped))
    assert done[1] == 1.0 == info["score"]  # 2 * 1 - 1
    env.reset(seed=5)
    wrong = 0 if oracle(env.unwrapped) else 1
    assert env.step(wrong)[1] == -1.0
    env.close()
