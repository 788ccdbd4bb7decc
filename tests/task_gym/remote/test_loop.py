"""Waits for the shared event loop: their results, and their end before there is one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any

import pytest

from task_gym.remote import loop


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


def test_calls_that_end_by_themselves_are_as_usual() -> None:
    with loop.abandoning(lambda: False):
        assert loop.wait_for(sleep(0.25, [])) == "slept"
        with pytest.raises(TimeoutError, match="the call's own"):
            loop.wait_for(fail())
    with loop.abandoning(lambda: True):
        assert loop.wait_for(sleep(0, [])) == "slept"


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


def test_another_threads_waits_go_on() -> None:
    found: list[str] = []
    with loop.abandoning(lambda: True):
        thread = threading.Thread(target=lambda: found.append(loop.wait_for(sleep(0.25, []))))
        thread.start()
        thread.join()
    assert found == ["slept"]
