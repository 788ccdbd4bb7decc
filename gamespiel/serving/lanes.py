"""Threads that callers share: each caller has so many at once, and its further calls wait for its own."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any

from gamespiel.serving.sessions import FullError

WAITING = 2048
"""The most calls of one caller that wait for a thread."""


class _Share:
    """One caller's part of a lane."""

    __slots__ = ("busy", "waiting")

    def __init__(self) -> None:
        self.busy = 0
        self.waiting: deque[asyncio.Future[None]] = deque()


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
        self._shares: dict[str, _Share] = {}
        self._under_way: set[Future[Any]] = set()

    async def run(self, caller: str, work: Callable[[], Any]) -> Any:
        """Returns what ``work`` returns in a thread. Work that has begun goes on if this is cancelled.

        Args:
            caller: Who asks for it.
            work: The work.

        Raises:
            FullError: too many calls of the caller wait.
        """
        await self._await_turn(caller)
        loop = asyncio.get_running_loop()

        def give_back(future: Future[Any]) -> None:
            self._under_way.discard(future)
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._release, caller)

        try:
            future = self._pool.submit(work)
        except BaseException:  # the system starts no further thread
            self._release(caller)
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

    async def _await_turn(self, caller: str) -> None:
        share = self._shares.setdefault(caller, _Share())
        if share.busy < self._each:
            share.busy += 1
            return
        if len(share.waiting) >= WAITING:
            raise FullError(f"{WAITING} calls of this caller wait, which is the most; try again later")
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        share.waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # its turn came just now
                self._release(caller)
            else:
                share.waiting.remove(turn)
            raise

    def _release(self, caller: str) -> None:
        """Hands a caller's thread to its next call that waits."""
        share = self._shares[caller]
        while share.waiting:
            turn = share.waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        share.busy -= 1
        if not share.busy:
            del self._shares[caller]
