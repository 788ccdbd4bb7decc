"""A circuit breaker: after some failures in a row, calls fail at once, with a try now and then."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

FAILURES = 5
"""Failures in a row after which the circuit opens."""

SHORTEST, LONGEST = 1.0, 30.0
"""Seconds between two tries of a server that is gone: at first, and after doubling."""


class Breaker:
    """Counts failures in a row.

    Args:
        clock: Returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._pause = SHORTEST
        self._until = 0.0

    @property
    def is_open(self) -> bool:
        """Whether the server counts as gone."""
        return self._failures >= FAILURES

    @property
    def wait(self) -> float:
        """Seconds until a call may be tried; 0 if it may be tried now."""
        return max(self._until - self._clock(), 0.0) if self.is_open else 0.0

    def fail(self) -> bool:
        """Counts a failure; returns whether the circuit opened with it."""
        self._failures += 1
        if self._failures == FAILURES:
            self._pause = SHORTEST
        elif not self.is_open or self.wait > 0:  # calls that began before it opened change nothing
            return False
        else:
            self._pause = min(2 * self._pause, LONGEST)
        self._until = self._clock() + self._pause
        return self._failures == FAILURES

    def succeed(self) -> bool:
        """Counts a success; returns whether the circuit closed with it."""
        was_open, self._failures = self.is_open, 0
        return was_open
