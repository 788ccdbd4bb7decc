"""The episodes of a server: bounded in number, per caller too, and dropped when nobody asks for them."""

from __future__ import annotations

import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Generic, TypeVar

from task_gym.caller import CALLER
from task_gym.errors import TaskGymError

T = TypeVar("T")

ABANDONED = 60.0
"""Seconds without a call after which an episode may lose its place to one that needs it."""

WAITING = 4
"""The most calls that wait for the call before them about the same episode."""

_LOOK_S = 0.2
"""Seconds between two looks at whether a call that waits is still wanted."""


class UnknownEpisodeError(TaskGymError):
    """An episode that was never begun, was stopped, or was dropped because nobody asked for it."""


class FullError(TaskGymError):
    """A server with as many episodes as it may have."""


@dataclass(eq=False, slots=True)
class Session(Generic[T]):
    """One episode.

    Attributes:
        episode: The episode that is played.
        used: When it was last asked for, in seconds of the clock.
        owner: The caller that began it.
        over: Whether it has ended, and is only kept for those who ask for its end once more.
        waiting: The number of calls that wait for ``lock``.
        lock: Held during a call: calls about one episode come one after another.
    """

    episode: T
    used: float
    owner: str
    over: bool = False
    waiting: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class Sessions(Generic[T]):
    """Episodes by id, safe to use from several threads.

    Args:
        limit: The most episodes at once.
        each: The most episodes of one caller at once.
        idle_s: Seconds without a call after which an episode is dropped.
        clock: Returns seconds.
    """

    def __init__(self, limit: int, each: int, idle_s: float, clock: Callable[[], float] = monotonic) -> None:
        self._limit, self._each, self._idle_s, self._clock = limit, each, idle_s, clock
        self._lock = threading.Lock()
        self._sessions: dict[str, Session[T]] = {}
        self._beginning: Counter[str] = Counter()  # places taken by episodes that are being made, by caller

    def playing(self) -> int:
        """Returns how many episodes are not over."""
        with self._lock:
            return self._beginning.total() + sum(not session.over for session in self._sessions.values())

    def add(self, make: Callable[[], T], owner: str = "") -> tuple[str, T]:
        """Returns the id of a new episode, and what ``make`` returned.

        If there is no place, the new one takes that of the episode that has been over for longest. If none is
        over, it takes that of the one that nobody has asked for for longest, at least ``ABANDONED`` seconds:
        of the same caller's if the caller has all its places, else of those of the caller that has most.

        Raises:
            FullError: there is no such place; nothing was made.
        """
        with self._lock:
            self._sweep()
            self._make_room(owner)
            self._beginning[owner] += 1
        name, sessions = secrets.token_urlsafe(18), dict[str, Session[T]]()
        try:
            episode = make()
            sessions[name] = Session(episode, self._clock(), owner)
        finally:
            with self._lock:
                self._beginning -= Counter([owner])
                self._sessions |= sessions
        return name, episode

    @contextmanager
    def turn(self, session: Session[T]) -> Iterator[None]:
        """Holds an episode within the context, after the calls about it that came before.

        Raises:
            FullError: too many calls wait for it.
            CallerLeftError: the caller has left meanwhile.
        """
        with self._lock:
            if session.waiting >= WAITING:
                raise FullError(
                    f"{WAITING} calls about this episode wait, which is the most; try again later"
                )
            session.waiting += 1
        caller = CALLER.get()
        try:
            while not session.lock.acquire(timeout=_LOOK_S):
                if caller is not None:
                    caller.require_presence()
        finally:
            with self._lock:
                session.waiting -= 1
        try:
            yield
        finally:
            session.used = self._clock()  # its search was no idle time
            session.lock.release()

    def find(self, name: Any) -> Session[T]:
        """Returns an episode.

        Raises:
            UnknownEpisodeError: there is none of this id.
        """
        with self._lock:
            self._sweep()
            session = self._sessions.get(name) if isinstance(name, str) else None
            if session is None:
                raise UnknownEpisodeError(
                    f"episode_id: {name!r:.80} was given, allowed: one that reset returned, that is not "
                    f"stopped, and that was asked for in the last {self._idle_s:g} s"
                )
            session.used = self._clock()
            return session

    def drop(self, name: Any) -> bool:
        """Ends an episode; returns whether there was one."""
        with self._lock:
            return isinstance(name, str) and self._sessions.pop(name, None) is not None

    def _make_room(self, owner: str) -> None:
        """Drops episodes that are over or abandoned until there is a place, or raises FullError."""
        counts = Counter(session.owner for session in self._sessions.values()) + self._beginning
        if counts[owner] >= self._each and not self._drop_oldest(owner):
            raise FullError(
                f"this caller plays {self._each} episodes, which is the most of one caller here; stop some, "
                "or try again later"
            )
        if len(self._sessions) + self._beginning.total() < self._limit:
            return
        if not self._drop_oldest(None) and not self._drop_oldest(counts.most_common(1)[0][0]):
            raise FullError(f"{self._limit} episodes are being played, which is the most; try again later")

    def _drop_oldest(self, owner: str | None) -> bool:
        """Drops the episode that has been over, else idle, for longest; returns whether there was one.

        Args:
            owner: The caller whose it is; None for one of any caller that is over.
        """
        before = self._clock() - ABANDONED
        candidates = [
            (not session.over, session.used, name)
            for name, session in self._sessions.items()
            if (
                session.over
                if owner is None
                else session.owner == owner and (session.over or session.used <= before)
            )
            and not session.lock.locked()
        ]
        if candidates:
            del self._sessions[min(candidates)[2]]
        return bool(candidates)

    def _sweep(self) -> None:
        before = self._clock() - self._idle_s
        for name in [name for name, session in self._sessions.items() if session.used < before]:
            if not self._sessions[name].lock.locked():  # a long search is no idle time
                del self._sessions[name]
