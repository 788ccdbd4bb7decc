"""Waits for the shared event loop: their results, and their end before there is one."""

from __future__ import annotations

import asyncio
import threading
import time

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
    assert time.monotonic() - began < 5
    while not ended:
        assert time.monotonic() - began < 5
        time.sleep(0.01)
    assert loop.wait_for(sleep(0.15, ended)) == "slept"  # nothing is abandoned outside


def test_calls_that_end_by_themselves_are_as_usual() -> None:
    with loop.abandoning(lambda: False):
        assert loop.wait_for(sleep(0.25, [])) == "slept"
        with pytest.raises(TimeoutError, match="the call's own"):
            loop.wait_for(fail())
    with loop.abandoning(lambda: True):
        assert loop.wait_for(sleep(0, [])) == "slept"


def test_another_threads_waits_go_on() -> None:
    found: list[str] = []
    with loop.abandoning(lambda: True):
        thread = threading.Thread(target=lambda: found.append(loop.wait_for(sleep(0.25, []))))
        thread.start()
        thread.join()
    assert found == ["slept"]
