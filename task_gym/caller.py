"""Whoever waits for a call: if the caller leaves, everything that the call began is ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf


class CallerLeftError(BaseException):
    """Work whose caller has left; no error of the work, so nothing handles it as one."""


class Caller:
    """Whoever waits for a call.

    Args:
        search_s: Seconds of processor time that opponents' searches may take.
        each: Whether every search may take them, or all searches of the call together.
        name: Who it is, for limits per caller.
    """

    def __init__(self, search_s: float = inf, *, each: bool = False, name: str = "") -> None:
        self.search_s, self.name = search_s, name
        self._left_s, self._each = search_s, each
        self._lock, self._left = threading.Lock(), False
        self._ends: dict[object, Callable[[], object]] = {}

    def leave(self) -> None:
        """Ends everything that is under way for the caller, and everything that begins later."""
        with self._lock:
            self._left = True
            ends, self._ends = list(self._ends.values()), {}
        for end in ends:
            end()

    @contextmanager
    def ending(self, end: Callable[[], object]) -> Iterator[None]:
        """Calls ``end``, from another thread, if the caller leaves within the context.

        Raises:
            CallerLeftError: the caller has left before.
        """
        key = object()
        with self._lock:
            if not self._left:
                self._ends[key] = end
        try:
            self.require_presence()
            yield
        finally:
            with self._lock:
                self._ends.pop(key, None)

    def require_presence(self) -> None:
        """Raises CallerLeftError if the caller has left."""
        if self._left:
            raise CallerLeftError

    @contextmanager
    def limited(self, seconds: float) -> Iterator[None]:
        """Ends, after so many seconds, what the context has begun for this caller, as if the caller left.

        Raises:
            TimeoutError: the seconds were over.
            CallerLeftError: the caller has left.
        """
        part = Caller(self.search_s, each=self._each, name=self.name)
        part._left_s = self._left_s
        timer = threading.Timer(seconds, part.leave)
        timer.daemon = True
        token = CALLER.set(part)
        try:
            with self.ending(part.leave):
                timer.start()
                yield
        except CallerLeftError:
            self.require_presence()
            raise TimeoutError from None
        finally:
            timer.cancel()
            CALLER.reset(token)
            self._left_s = part._left_s

    def search_time(self) -> float:
        """Returns the seconds of processor time that the next search may take."""
        return self.search_s if self._each else max(self._left_s, 0.0)

    def spend(self, seconds: float) -> None:
        """Counts the processor time of a search."""
        self._left_s -= seconds


CALLER: ContextVar[Caller | None] = ContextVar("CALLER", default=None)
"""The caller of what this thread does, if somebody watches for its leaving."""
