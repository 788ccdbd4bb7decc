"""Faults of vLLM servers: what fails is tried again, waited for, or named; nothing is lost."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import Awaitable, Callable

import pytest

from gamespiel.agents.models.names import NEWEST
from gamespiel.agents.sampling.vllm import server as vllm_server
from gamespiel.agents.sampling.vllm.replicas import Patience
from gamespiel.agents.sampling.vllm.server import BrokenAnswerError, Server, ServerError
from tests.agents.served import TEXTS, MakeServer, Plug, answers_of, decide, playing_itself
from tests.agents.toys import make_policy, randomise


@pytest.mark.parametrize("fault", ["500", "close", "half", "missing", "gzip"])
def test_a_fault_is_tried_again(fault: str, make_server: MakeServer, plug: Plug) -> None:
    policy, server = make_policy(adapters=0.1), make_server()
    expected = decide(policy)
    plug(policy, server).publish(NEWEST, policy.adapters.learning)
    server.faults.extend([fault] * 3)  # the second time it counts as gone
    assert [one.tokens for one in decide(policy)] == [one.tokens for one in expected]
    assert not server.faults


def test_a_time_out_is_tried_again(make_server: MakeServer, plug: Plug) -> None:
    policy, server = make_policy(adapters=0.1), make_server()
    expected = decide(policy)
    plug(policy, server, seconds=2.0).publish(NEWEST, policy.adapters.learning)
    server.faults.append("hang")
    assert [one.tokens for one in decide(policy)] == [one.tokens for one in expected]
    wait_for(lambda: server.aborted == 1)
    assert server.aborted == 1


def wait_for(found: Callable[[], bool], seconds: float = 60.0) -> None:
    """Waits until something is so, or so many seconds."""
    ends = time.monotonic() + seconds
    while not found() and time.monotonic() < ends:
        time.sleep(0.01)


def test_a_request_that_always_fails_and_a_server_that_never_comes_back_stop(
    make_server: MakeServer, plug: Plug
) -> None:
    policy, server = make_policy(), make_server()
    patience = Patience(tries=1, first=0.01, poll=0.02, seconds=0.2)
    plug(policy, server, patience=patience).publish(NEWEST, policy.adapters.learning)
    server.faults.extend(["500"] * 1000)
    with pytest.raises(ServerError, match=r"status 500: EngineCore died; the request failed too often"):
        decide(policy)
    server.stop()
    try:
        with pytest.raises(ServerError, match="no vLLM server came back within 0 s"):
            decide(policy)
    finally:
        server.start()


def test_an_answer_that_is_compressed_or_too_long_is_not_read(
    make_server: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = make_server()

    async def ask(call: Callable[[Server], Awaitable[object]]) -> None:
        there = Server(server.url)
        try:
            await call(there)
        finally:
            await there.close()

    server.faults.append("gzip")
    with pytest.raises(BrokenAnswerError, match="sent a compressed response: gzip"):
        asyncio.run(ask(lambda there: there.complete({"prompt": []})))
    monkeypatch.setattr(vllm_server, "MOST", 10)
    with pytest.raises(BrokenAnswerError, match="sent more than 10 bytes"):
        asyncio.run(ask(lambda there: there.list_cards()))


def test_a_restart_in_mid_run_changes_nothing(
    make_server: MakeServer, plug: Plug, caplog: pytest.LogCaptureFixture
) -> None:
    """It forgets all adapters, which are loaded again; what was collected is not lost."""
    here, there = playing_itself(total_steps=3), playing_itself(total_steps=3)
    here.learn()
    server = make_server()
    plug(there.policy, server)
    played, stopped = 0, threading.Event()

    def on_progress(phase: str, done: int, total: int) -> None:
        nonlocal played
        played += 1
        if played == 6:
            server.stop()
            stopped.set()

    def restart() -> None:
        stopped.wait()
        wait_for(lambda: "waiting for it" in caplog.text)
        server.start()

    there.on_progress = on_progress
    thread = threading.Thread(target=restart, daemon=True)
    thread.start()
    with caplog.at_level(logging.WARNING):
        there.learn()
    thread.join()
    assert answers_of(there) == answers_of(here)
    assert "waiting for it" in caplog.text and "is back" in caplog.text
    assert len(server.loaded) > 1  # the pool's snapshots too


def test_a_server_that_forgot_adapters_gets_them_again(make_server: MakeServer, plug: Plug) -> None:
    policy, server = make_policy(adapters=0.1), make_server()
    expected = decide(policy)
    plug(policy, server).publish(NEWEST, policy.adapters.learning)
    server.loaded.clear()
    assert [one.tokens for one in decide(policy)] == [one.tokens for one in expected]


def test_one_of_two_replicas_is_gone(make_server: MakeServer, plug: Plug) -> None:
    """The other one answers, and gets the new version; the first one gets it when it is back."""
    policy, servers = make_policy(adapters=0.1), [make_server(), make_server()]
    sampler = plug(policy, *servers)
    sampler.publish(NEWEST, policy.adapters.learning)
    servers[0].stop()
    for seed in (1, 2):
        randomise(policy, 0.1, seed)
        sampler.publish(NEWEST, policy.adapters.learning)
        expected = policy.adapters, [one.tokens for one in decide(policy)]
    servers[0].start()
    servers[1].stop()
    assert [one.tokens for one in decide(policy)] == expected[1]
    assert servers[0].loaded.keys() <= set(servers[1].ever_loaded) | set(servers[0].ever_loaded)
    assert len(servers[0].loaded) == 1
    servers[1].start()


def test_ctrl_c_leaves_no_request_behind(make_server: MakeServer, plug: Plug) -> None:
    policy, server = make_policy(), make_server()
    plug(policy, server).publish(NEWEST, policy.adapters.learning)
    server.faults.extend(["hang"] * 4)

    def count_hung() -> int:
        return 4 - len(server.faults)

    def interrupt() -> None:
        wait_for(lambda: count_hung() > 0)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt, daemon=True)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        decide(policy)
    # The server may read a request that was sent before only now.
    wait_for(lambda: server.aborted == count_hung())
    assert server.aborted == count_hung() > 0
    server.faults.clear()
    assert len(decide(policy)) == len(TEXTS)  # the next requests are as before
