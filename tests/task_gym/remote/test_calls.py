"""Calls to a server: waits for them, what it may answer, and what a system lacks."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_gym.spec import choice_lines
from task_gym.remote import loop
from task_gym.remote.connection import Breaker
from task_gym.remote.protocol import Failure, check_address, read_choices, read_reply, read_result

# -- waits for the shared event loop: their results, and their end before there is one ---------------------


async def sleep(seconds: float, ended: list[str]) -> str:
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        ended.append("cancelled")
        raise
    return "slept"


async def fail() -> None:
    raise TimeoutError("the call's own")


def test_an_unwanted_wait_ends_and_its_call_is_cancelled() -> None:
    unwanted, ended = threading.Event(), list[str]()
    threading.Timer(0.3, unwanted.set).start()
    began = time.monotonic()
    with loop.abandoning(unwanted.is_set), pytest.raises(loop.AbandonedWaitError):
        loop.wait_for(sleep(60, ended))
    assert time.monotonic() - began < 30  # the call takes 60 s
    while not ended:
        assert time.monotonic() - began < 30
        time.sleep(0.01)
    assert loop.wait_for(sleep(0.15, ended)) == "slept"  # nothing is abandoned outside


def test_ctrl_c_ends_a_wait_though_another_thread_was_given_the_signal() -> None:
    """As if it came right before the main thread's wait, which it does not interrupt then."""
    threading.Timer(0.3, lambda: signal.pthread_kill(threading.get_ident(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        loop.wait_for(sleep(20, []))
    assert time.monotonic() - began < 15


def test_calls_that_end_by_themselves_are_as_usual() -> None:
    with loop.abandoning(lambda: False):
        assert loop.wait_for(sleep(0.25, [])) == "slept"
        with pytest.raises(TimeoutError, match="the call's own"):
            loop.wait_for(fail())
    with loop.abandoning(lambda: True), ThreadPoolExecutor() as pool:
        assert loop.wait_for(sleep(0, [])) == "slept"
        assert pool.submit(lambda: loop.wait_for(sleep(0.25, []))).result() == "slept"  # another thread's


def test_a_cancel_right_after_a_calls_begin_ends_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, submit = loop.Calls(), loop.submit

    def submit_and_cancel(call: Coroutine[Any, Any, Any]) -> Future[Any]:
        future = submit(call)
        calls.cancel()  # as another thread, before this one goes on
        return future

    with monkeypatch.context() as patch, pytest.raises(CancelledError):
        patch.setattr(loop, "submit", submit_and_cancel)
        calls.wait_for(sleep(3, []))
    assert calls.wait_for(sleep(0, [])) == "slept"  # those that begin later are not concerned


# -- responses, and lists of legal actions in observations -------------------------------------------------

GOOD = {"observation": "x", "reward": 1, "done": False, "truncated": False, "episode_id": "e", "info": {}}


def test_a_good_reply() -> None:
    reply = read_reply(GOOD)
    assert (reply.observation, reply.reward, reply.done, reply.episode) == ("x", 1.0, False, "e")
    assert not reply.is_ours
    assert read_reply({**GOOD, "info": {"server": "gamespiel 0.1.0"}}).is_ours
    with pytest.raises(Failure, match=r"about episode 'e' instead of 'f'"):
        read_reply(GOOD, "f")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"observation": None}, "observation is no text: None"),
        ({"reward": float("nan")}, "reward is no finite number: nan"),
        ({"reward": 10**400}, "reward is no finite number: 1000"),
        ({"observation": "\ud800"}, "cannot be written as text"),
        ({"info": {"admissible_commands": ["\udfff"]}}, "cannot be written as text"),
        ({"done": True, "reward": None}, "reward is no finite number: None"),
        ({"reward": True}, "reward is no finite number: True"),
        ({"done": 1}, "done and truncated are no booleans"),
        ({"episode_id": None}, "names no episode"),
        ({"info": []}, "info is no object"),
        ({"info": {"error": {"type": "engine", "message": "boom"}}}, "the server reports engine: boom"),
    ],
)
def test_broken_replies(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(Failure, match=message):
        read_reply({**GOOD, **changed})


def test_an_end_without_a_score_is_none() -> None:
    """A reward that is missing is no reward of 0, which would be a loss."""
    silent = {name: value for name, value in GOOD.items() if name != "reward"}
    assert read_reply(silent).reward == 0.0
    with pytest.raises(Failure, match="done, and states no score"):
        read_reply({**silent, "done": True})
    assert read_reply({**silent, "done": True, "info": {"score": 1.0}}).done


def test_an_address_is_what_was_asked() -> None:
    asked = {"task_id": 1, "seed": 0, "game_name": "hex"}
    for said in ({}, {"task_id": 1, "seed": None, "other": 2}, asked):
        check_address(said, asked)
    for wrong in ({"task_id": 2}, {"seed": False}, {"task_id": 1.0}, {"task_id": "1"}, {"game_name": "Hex"}):
        with pytest.raises(Failure, match="was asked for"):
            check_address({**asked, **wrong}, asked)


@given(
    st.dictionaries(
        st.integers(0, 10**6), st.text(st.characters(codec="utf-8", exclude_characters="\n")), min_size=1
    )
)
def test_choices_are_read_back(actions: dict[int, str]) -> None:
    legal = sorted(actions)
    names = [actions[action] for action in legal]
    # The state may itself have such a block: the last one counts.
    text = f"Legal Actions:\n  5 -> no\n\nLegal Actions:\n{choice_lines(legal, names)}\n\nYour choice (x):"
    assert read_choices(text) == (legal, names)


PLAYED = {"score": 1, "success": True}


def test_results_of_whole_episodes() -> None:
    assert read_result(PLAYED) == {**PLAYED, "extra": {}}
    assert read_result({**PLAYED, "error": None})["score"] == 1
    assert read_result({"error": "the model is away"})["extra"] == {}


@pytest.mark.parametrize(
    "wrong",
    [
        {"score": True}, {"score": 1.5}, {"score": 0.5}, {"score": 0.0}, {"success": False},
        {"score": float("nan")}, {"score": None}, {"success": None},
        {"score": 10**400}, {"extra": []}, {"extra": {"usage": [1]}},
        {"extra": {"usage": {"prompt_tokens": "many"}}}, {"extra": {"usage": {"prompt_tokens": -1}}},
        {"extra": {"usage": {"completion_tokens": 10**400}}}, {"extra": {"refused_replies": "two"}},
    ],
)  # fmt: skip
def test_results_that_are_none(wrong: dict[str, Any]) -> None:
    with pytest.raises(Failure):
        read_result({**PLAYED, **wrong})


@pytest.mark.parametrize(
    "block", ["", "  1 -> a\n  1 -> b", "  2 -> a\n  1 -> b", "1 -> a", "  1 -> a\n  ... and 13 more"]
)
def test_blocks_that_are_no_list(block: str) -> None:
    with pytest.raises(Failure, match=r"list of legal actions"):
        read_choices(f"Legal Actions:\n{block}\n\nYour choice:")


def test_the_breaker_opens_at_the_fifth_failure_and_doubles_its_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, breaker = [0.0], Breaker()
    monkeypatch.setattr("task_gym.remote.connection.monotonic", lambda: now[0])
    assert [breaker.fail() for _ in range(5)] == [False] * 4 + [True]
    assert (breaker.is_open, breaker.wait) == (True, 1.0)
    assert not breaker.fail() and breaker.wait == 1.0  # a call that began before
    now[0] = 1.0
    assert breaker.wait == 0.0  # one may try
    assert not breaker.fail() and breaker.wait == 2.0
    for _ in range(9):
        now[0] += breaker.wait
        breaker.fail()
    assert breaker.wait == 30.0
    assert breaker.succeed() and not breaker.is_open and breaker.wait == 0.0
    assert not breaker.succeed()


ELSEWHERE = """
import sys, os, signal
import asyncio, concurrent.futures, multiprocessing, subprocess, tempfile
import gymnasium, httpx, numpy, pydantic, pyspiel
for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
    sys.modules[name] = None
for name in ("fork", "geteuid", "getpgrp", "getuid", "killpg", "register_at_fork", "setsid"):
    delattr(os, name)
for name in ("SIGHUP", "SIGKILL", "SIGXCPU"):
    delattr(signal, name)
import game_gym, trace_gym
sys.platform = "win32"
import json
env = gymnasium.make("GameSpiel-v0", game="leduc_poker")
_, info = env.reset(seed=1)
done = False
while not done:
    _, _, done, _, info = env.step(info["legal_actions"][0])
said = [info["result"]]
env = gymnasium.make("CodeTrace-v0", level=1)
env.reset(seed=1)
said.append(env.step("?")[4]["result"])
for more in ({"id": "CodeTrace-v0", "source": sys.argv[1]},
             {"id": "GameSpiel-v0", "task_id": 0, "backend": "affinetes", "mode": "docker"}):
    try:
        gymnasium.make(**more).reset(seed=1)
    except Exception as error:
        said.append(f"{type(error).__name__}: {error}")
print(json.dumps(said))
"""


@pytest.mark.launch
@pytest.mark.sample
def test_the_rest_works_where_linux_own_modules_are_missing(tmp_path: Path) -> None:
    programs = tmp_path / "programs.jsonl"
    programs.write_text(json.dumps({"program": "print(1)", "inputs": None}) + "\n")
    done = subprocess.run([sys.executable, "-c", ELSEWHERE, str(programs)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    game, trace, stranger, docker = json.loads(done.stdout.splitlines()[-1])
    assert game in ("win", "loss", "draw") and trace == "loss"
    assert "this system is 'win32', allowed: 'linux'" in stranger
    assert docker.startswith("ArgumentError: mode: 'docker' was given on the system 'win32'")
