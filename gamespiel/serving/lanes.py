"""Threads that callers share: each caller has so many at once, and its further calls wait for its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary

from gamespiel.serving.sessions import FullError

WAITING = 2048
"""The most calls of one caller that wait for a thread."""


class _Share(asyncio.Semaphore):
    """One caller's part of a lane, which is there while a call of the caller is."""

    waiting = 0


class Lane:
    """Threads that work for callers. Its methods, ``is_idle`` apart, are called on the event loop.

    Args:
        threads: Number of threads.
        each: The most threads of one caller at once.
        name: Their name.
    """

    def __init__(self, threads: int, each: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._each = each
        self._shares: WeakValueDictionary[str, _Share] = WeakValueDictionary()
        self._under_way: set[Future[Any]] = set()

    async def run(self, caller: str, work: Callable[[], Any]) -> Any:
        """Returns what ``work`` returns in a thread. Work that has begun goes on if this is cancelled.

        Args:
            caller: Who asks for it.
            work: The work.

        Raises:
            FullError: too many calls of the caller wait.
        """
        share = self._shares.get(caller) or self._shares.setdefault(caller, _Share(self._each))
        if share.locked() and share.waiting >= WAITING:
            raise FullError(f"{WAITING} calls of this caller wait, which is the most; try again later")
        share.waiting += 1
        try:
            await share.acquire()
        finally:
            share.waiting -= 1
        loop = asyncio.get_running_loop()

        def give_back(future: Future[Any]) -> None:
            self._under_way.discard(future)
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(share.release)

        try:
            future = self._pool.submit(work)
        except BaseException:  # the system starts no further thread
            share.release()
            raise
        self._under_way.add(future)
        future.add_done_callback(give_back)
        result = asyncio.wrap_future(future)
        # A failure is known, even if nobody asks for it: asyncio would print it.
        result.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await result

    def is_idle(self, timeout: float) -> bool:
        """Returns whether no thread works any more after so many seconds."""
        return not wait(set(self._under_way), timeout).not_done
