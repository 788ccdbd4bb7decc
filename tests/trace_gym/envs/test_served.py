"""Traces on a server that fails or cheats: each fault ends one episode, and the next one is clean."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import gymnasium as gym
import pytest

import trace_gym  # noqa: F401  (registers the environments)
from task_gym.errors import ArgumentError
from tests.task_gym.remote.stub import Stub, result, run_stub

ASKED = {"observation": "print(1)", "reward": 0.0, "done": False, "episode_id": "e1", "info": {}}
RIGHT = {**ASKED, "observation": "Right.", "reward": 1.0, "done": True}
BOTH = {"affine": 1.0, "exact": 1.0}


@pytest.fixture
def stub() -> Iterator[Stub]:
    with run_stub() as server:
        yield server


def remote(stub: Stub, **arguments: Any) -> Any:
    defaults = {"task_id": 5, "timeout": 30.0, "backend": "affinetes", "base_url": stub.url}
    return gym.make("CodeTrace-v0", **defaults, **arguments).unwrapped


def check_clean(env: Any, stub: Stub) -> None:
    stub.faults = [result(ASKED), result(RIGHT)]
    assert env.reset(seed=0)[0] == "print(1)"
    text, reward, terminated, truncated, info = env.step("1")
    assert (text, reward, terminated, truncated) == ("Right.", 1.0, True, False)
    assert (info["score"], info["by_scoring"], info["level"]) == (1.0, {"affine": 1.0}, None)


def said(**info: Any) -> Any:
    """A server's answer with ``info``, as our own server's has it."""
    return result({**RIGHT, "info": {"server": "gamespiel", **info}})


ANSWERS = {
    "not over": (result({**RIGHT, "done": False}), "did not score the answer"),
    "too right": (said(by_scoring={**BOTH, "exact": 1.5}), r"a score is no number in \[0, 1\]: 1.5"),
    "no exact": (said(by_scoring={"affine": 1.0}), "states no score 'exact'"),
    "huge": (said(by_scoring={**BOTH, "exact": 10**400}), "a score is no number"),
    "other score": (said(by_scoring=BOTH, score=0.0), "states score 0.0 with score 1"),
    "other result": (said(by_scoring=BOTH, result="loss"), "states result 'loss' with"),
    "other reward": (said(by_scoring={"affine": 0.0, "exact": 0.0}), "states reward 1.0 with score 0.0"),
    "other task": (said(task_id=6), "plays task_id 6, and 5 was asked for"),
    "other seed": (said(seed=9), "plays seed 9, and 0 was asked for"),
    "long": (result({**RIGHT, "observation": "x" * 1_048_577}), "1048577 characters, allowed: at most 104"),
    "grouped": (said(by_scoring=BOTH, level=[1]), r"level is no int: \[1\]"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_fault_in_the_answer(name: str, stub: Stub) -> None:
    fault, message = ANSWERS[name]
    env = remote(stub, scoring="exact")
    stub.faults = [result({**ASKED, "info": {"server": "gamespiel"}}), fault]
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step("1")
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert (info["result"], info["score"]) == ("fault", None)
    assert re.search(message, info["fault"])
    assert [call for call in stub.calls if call != "stop"] == ["reset", "step"]
    check_clean(remote(stub), stub)


def test_a_fault_in_the_question(stub: Stub) -> None:
    env = remote(stub)
    stub.faults = [result({**ASKED, "info": {"family": {}}})]
    _, info = env.reset(seed=0)
    assert (info["result"], info["fault"]) == ("fault", "the response's family is no str: {}")
    assert "stop" in stub.calls or env.step("1")[3]  # the episode was abandoned; a step changes nothing
    check_clean(env, stub)


def test_what_a_server_cannot_do_is_a_named_error(stub: Stub) -> None:
    stub.faults = [result(ASKED)]
    with pytest.raises(ArgumentError, match=r"scoring: 'exact' was given, which this server does not have"):
        remote(stub, scoring="exact").reset(seed=0)
    with pytest.raises(ArgumentError, match=r"level: 2 was given with backend 'affinetes'"):
        gym.make("CodeTrace-v0", level=2, backend="affinetes", base_url=stub.url)
