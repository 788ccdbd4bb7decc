"""The episodes of a server: bounded in number, and dropped when nobody asks for them."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from time import monotonic
from typing import Any, Generic, TypeVar

from task_gym.errors import TaskGymError

T = TypeVar("T")


class UnknownEpisodeError(TaskGymError):
    """An episode that was never begun, was stopped, or was dropped because nobody asked for it."""


class FullError(TaskGymError):
    """A server with as many episodes as it may have."""


class Kept(Generic[T]):
    """One episode.

    Attributes:
        episode: The episode that is played.
        lock: Held during a call: calls about one episode come one after another.
        used: When it was last asked for, in seconds of the clock.
        over: Whether it has ended, and is only kept for those who ask for its end once more.
    """

    __slots__ = ("episode", "lock", "over", "used")

    def __init__(self, episode: T, used: float) -> None:
        self.episode, self.used = episode, used
        self.lock = threading.Lock()
        self.over = False


class Sessions(Generic[T]):
    """Episodes by id, safe to use from several threads.

    Args:
        limit: The most episodes at once.
        idle_s: Seconds without a call after which an episode is dropped.
        clock: Returns seconds.
    """

    def __init__(self, limit: int, idle_s: float, clock: Callable[[], float] = monotonic) -> None:
        self._limit, self.idle_s, self._clock = limit, idle_s, clock
        self._lock = threading.Lock()
        self._kept: dict[str, Kept[T]] = {}
        self._beginning = 0  # places taken by episodes that are being made

    def __len__(self) -> int:
        return len(self._kept)

    def playing(self) -> int:
        """Returns how many episodes are not over."""
        with self._lock:
            return self._beginning + sum(not kept.over for kept in self._kept.values())

    def add(self, make: Callable[[], T]) -> tuple[str, T]:
        """Returns the id of a new episode, and what ``make`` returned.

        If there is no place, the new one takes that of the episode that has been over for longest.

        Raises:
            FullError: there are too many that are not over; nothing was made.
        """
        with self._lock:
            self._sweep()
            if len(self._kept) + self._beginning >= self._limit:
                self._drop_one_that_is_over()
            if len(self._kept) + self._beginning >= self._limit:
                raise FullError(
                    f"{self._limit} episodes are being played, which is the most; try again later"
                )
            self._beginning += 1
        try:
            episode = make()
        except BaseException:
            with self._lock:
                self._beginning -= 1
            raise
        name = secrets.token_urlsafe(18)
        with self._lock:
            self._beginning -= 1
            self._kept[name] = Kept(episode, self._clock())
        return name, episode

    def find(self, name: Any) -> Kept[T]:
        """Returns an episode.

        Raises:
            UnknownEpisodeError: there is none of this id.
        """
        with self._lock:
            self._sweep()
            kept = self._kept.get(name) if isinstance(name, str) else None
            if kept is None:
                raise UnknownEpisodeError(
                    f"episode_id: {name!r:.80} was given, allowed: one that reset returned, that is not "
                    f"stopped, and that was asked for in the last {self.idle_s:g} s"
                )
            kept.used = self._clock()
            return kept

    def drop(self, name: Any) -> bool:
        """Ends an episode; returns whether there was one."""
        with self._lock:
            return isinstance(name, str) and self._kept.pop(name, None) is not None

    def _drop_one_that_is_over(self) -> None:
        over = [name for name, kept in self._kept.items() if kept.over]
        if over:
            del self._kept[min(over, key=lambda name: self._kept[name].used)]

    def _sweep(self) -> None:
        before = self._clock() - self.idle_s
        for name in [name for name, kept in self._kept.items() if kept.used < before]:
            if not self._kept[name].lock.locked():  # a long search is no idle time
                del self._kept[name]
