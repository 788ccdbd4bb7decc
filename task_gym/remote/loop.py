"""The event loop that all remote calls of this process share, in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

LOOK_SECONDS = 0.1
"""Seconds between two looks at whether a wait is still wanted, or was interrupted."""

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_here = threading.local()


class AbandonedWaitError(BaseException):
    """A wait whose result nobody wants any more; no error of the call, so nothing handles it as one."""


@contextmanager
def abandoning(unwanted: Callable[[], bool]) -> Iterator[None]:
    """Ends this thread's waits within the context as soon as ``unwanted`` returns true.

    A signal's handler can then end them without raising: it would raise anywhere, in the middle of writing
    a checkpoint too.
    """
    before, _here.unwanted = getattr(_here, "unwanted", None), unwanted
    try:
        yield
    finally:
        _here.unwanted = before


def submit(call: Coroutine[Any, Any, T]) -> Future[T]:
    """Starts a call and returns at once."""
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="task_gym.remote", daemon=True).start()
        running = _loop
    return asyncio.run_coroutine_threadsafe(call, running)


def wait_for(call: Coroutine[Any, Any, T]) -> T:
    """Returns the result of a call. Ctrl-C cancels it."""
    return Calls().wait_for(call)


class Calls:
    """Calls that threads wait for, and that another thread can cancel together."""

    def __init__(self) -> None:
        self._under_way: set[Future[Any]] = set()
        self._cancels = 0

    def wait_for(self, call: Coroutine[Any, Any, T]) -> T:
        """Returns the result of a call. Ctrl-C cancels it.

        Raises:
            concurrent.futures.CancelledError: ``cancel`` was called meanwhile.
            AbandonedWaitError: the call was cancelled, because ``abandoning`` says so.
        """
        cancels = self._cancels
        future = submit(call)
        self._under_way.add(future)
        if self._cancels != cancels:  # between these lines: ``cancel`` has not seen the call
            future.cancel()
        unwanted: Callable[[], bool] | None = getattr(_here, "unwanted", None)
        # Signals come to the main thread. One right before a wait without a limit is seen only after it.
        looks = unwanted is not None or threading.current_thread() is threading.main_thread()
        try:
            while True:
                try:
                    return future.result(LOOK_SECONDS if looks else None)
                except TimeoutError:
                    if future.done():  # meanwhile, or the error is the call's own
                        return future.result()
                if unwanted is not None and unwanted():
                    raise AbandonedWaitError
        except BaseException:
            future.cancel()
            raise
        finally:
            self._under_way.discard(future)

    def cancel(self) -> None:
        """Cancels the calls under way; those that begin later are not concerned."""
        self._cancels += 1
        for future in list(self._under_way):
            future.cancel()


def _forget() -> None:
    """Forgets the loop in a forked child: no thread runs it there, and the lock may be taken."""
    global _loop, _lock
    _loop, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
