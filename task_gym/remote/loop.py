"""The event loop that all remote calls of this process share, in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def submit(call: Coroutine[Any, Any, T]) -> Future[T]:
    """Starts a call and returns at once."""
    return asyncio.run_coroutine_threadsafe(call, _running())


def wait_for(call: Coroutine[Any, Any, T]) -> T:
    """Returns the result of a call. Ctrl-C cancels it."""
    return Calls().wait_for(call)


class Calls:
    """Calls that threads wait for, and that another thread can cancel together."""

    def __init__(self) -> None:
        self._under_way: set[Future[Any]] = set()

    def wait_for(self, call: Coroutine[Any, Any, T]) -> T:
        """Returns the result of a call. Ctrl-C cancels it.

        Raises:
            concurrent.futures.CancelledError: ``cancel`` was called meanwhile.
        """
        future = submit(call)
        self._under_way.add(future)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise
        finally:
            self._under_way.discard(future)

    def cancel(self) -> None:
        """Cancels the calls under way; those that begin later are not concerned."""
        for future in list(self._under_way):
            future.cancel()


def _running() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None:
            # asyncio's own, whatever the process uses elsewhere: affinetes can patch no other (uvloop's).
            _loop = asyncio.SelectorEventLoop()
            threading.Thread(target=_loop.run_forever, name="task_gym.remote", daemon=True).start()
        return _loop


def _forget() -> None:
    """Forgets the loop in a forked child: no thread runs it there, and the lock may be taken."""
    global _loop, _lock
    _loop, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
