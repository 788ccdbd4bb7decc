"""A connection to one server: sessions, time limits, repeats and the circuit breaker."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import count
from operator import attrgetter
from time import monotonic
from typing import Any, TypeVar

from gymnasium import logger

from task_gym.errors import BackendError
from task_gym.remote import loop
from task_gym.remote.protocol import SESSIONS, Failure, Reply, check_address, read_reply, read_result
from task_gym.remote.settings import Settings

FAILURES = 5
"""Failures in a row after which the circuit opens."""

SHORTEST, LONGEST = 1.0, 30.0
"""Seconds between two tries of a server that is gone: at first, and after doubling."""


class Breaker:
    """Counts failures in a row."""

    def __init__(self) -> None:
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
        return max(self._until - monotonic(), 0.0) if self.is_open else 0.0

    def fail(self) -> bool:
        """Counts a failure; returns whether the circuit opened with it."""
        self._failures += 1
        if self._failures == FAILURES:
            self._pause = SHORTEST
        elif not self.is_open or self.wait > 0:  # calls that began before it opened change nothing
            return False
        else:
            self._pause = min(2 * self._pause, LONGEST)
        self._until = monotonic() + self._pause
        return self._failures == FAILURES

    def succeed(self) -> bool:
        """Counts a success; returns whether the circuit closed with it."""
        was_open, self._failures = self.is_open, 0
        return was_open


PER_CLIENT = 8
"""Calls under way per HTTP client. A client looks at all its connections for every call."""

STOP_TIMEOUT = 5.0
"""Seconds that the end of an abandoned episode may take. Nobody waits for it."""


T = TypeVar("T")


class Connection:
    """One server, for all environments of this process and from any thread.

    A reset is repeated if it fails. A step is repeated only if it certainly did not happen: no
    connection was made, or the server says so.

    Args:
        settings: The server.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clients: list[Any] = []
        self._breaker = Breaker()
        self._met = False  # whether the server ever answered
        self._evaluations = loop.Calls()

    def reset(self, **arguments: Any) -> Reply:
        """Begins an episode.

        Raises:
            Failure: none was begun.
            BackendError: the arguments are refused, or the server never answered since the process started.
        """
        try:
            return loop.wait_for(self._ask("reset", arguments, None))
        except Failure as failure:
            if failure.kind == "refused" or (failure.unreachable and not self._met):
                raise BackendError(f"backend 'affinetes': {failure.sentence}") from failure
            raise

    def step(self, episode: str, action: str) -> Reply:
        """Takes a step, or raises Failure; then it is unknown whether the step happened."""
        return loop.wait_for(self._ask("step", {"action": action, "episode_id": episode}, episode))

    def evaluate(self, limit: float, **arguments: Any) -> Mapping[str, Any]:
        """Plays a whole episode there with a model, or raises Failure.

        Args:
            limit: Seconds that it may take.
            **arguments: As the method ``evaluate`` of affinetes' containers takes them.

        Raises:
            concurrent.futures.CancelledError: ``cancel`` was called meanwhile.
        """
        return self._evaluations.wait_for(self._evaluate(limit, arguments))

    def cancel(self) -> None:
        """Gives up the episodes that ``evaluate`` waits for, in all threads."""
        self._evaluations.cancel()

    async def _evaluate(self, limit: float, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        async def play() -> Mapping[str, Any]:
            result = read_result(await self._call("evaluate", arguments, limit))
            check_address(result["extra"], _name_address(arguments))
            return result

        return await _repeat(play, lambda failure: not failure.happened and failure.kind != "refused")

    def stop(self, episode: str) -> None:
        """Abandons an episode. Returns at once: the server would drop it later by itself."""
        if not self._breaker.is_open:
            loop.submit(self._stop(episode))

    def forget(self) -> None:
        """Makes connections anew: in a forked child, the parent's sockets belong to the parent's loop."""
        self._clients, self._breaker = [], Breaker()

    async def _stop(self, episode: str) -> None:
        with suppress(Failure):
            await self._call("stop", {"episode_id": episode}, STOP_TIMEOUT)

    async def _ask(self, method: str, arguments: Mapping[str, Any], episode: str | None) -> Reply:
        if episode is None:
            # A step fails at once while the server is gone, but a reset waits: failing resets would follow
            # one another without a pause.
            await asyncio.sleep(self._breaker.wait)

        def may_pass(failure: Failure) -> bool:
            lasts = failure.kind in ("refused", "unknown") or self._breaker.wait > 0
            return not lasts and (episode is None or not failure.happened)

        return await _repeat(lambda: self._try(method, arguments, episode), may_pass)

    async def _try(self, method: str, arguments: Mapping[str, Any], episode: str | None) -> Reply:
        if self._breaker.wait:
            raise Failure("away", f"{self._gone()}", happened=False)
        try:
            reply = read_reply(await self._call(method, arguments, self._settings.timeout), episode)
        except Failure as failure:
            self._count(failure)
            raise
        self._count(None)
        return reply

    async def _call(self, method: str, arguments: Mapping[str, Any], limit: float) -> Any:
        """Returns the response to a call that may take so many seconds, or raises Failure."""
        from task_gym.remote.client import Client

        clients = self._clients  # another thread may make them anew meanwhile
        client = min(clients, key=attrgetter("busy"), default=None)
        if client is None or client.busy >= PER_CLIENT:
            client = Client(self._settings)
            clients.append(client)
        client.busy += 1
        try:
            return await asyncio.wait_for(client.call(method, arguments), limit)
        except TimeoutError:
            late = f"server {self._settings.base_url} did not answer {method} in {limit:g} s"
            raise Failure("late", late) from None
        finally:
            client.busy -= 1

    def _count(self, failure: Failure | None) -> None:
        if failure is not None and failure.unreachable:
            if self._breaker.fail() and self._met:
                logger.warn(self._gone())
            return
        self._met = True
        if self._breaker.succeed():
            logger.warn(f"server {self._settings.base_url} is back")

    def _gone(self) -> str:
        return (
            f"server {self._settings.base_url} is gone: {FAILURES} calls in a row failed; it is tried again "
            f"in {self._breaker.wait:.0f} s, and until then episodes end as faults"
        )


class Docked(Connection):
    """A container as the server: it is started at the first call, and replaced if it has died.

    Args:
        settings: The container.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        assert settings.container is not None
        from task_gym.remote.docker import use_of

        self._use = use_of(settings.container)
        self._inner: dict[str, Connection] = {}
        self._lost = ""  # the address of a container that gave no answer

    def reset(self, **arguments: Any) -> Reply:
        """Begins an episode, in a new container if the one before has died."""
        return self._answered(lambda inner: inner.reset(**arguments))

    def step(self, episode: str, action: str) -> Reply:
        """Takes a step, or raises Failure."""
        return self._noted(lambda inner: inner.step(episode, action))

    def evaluate(self, limit: float, **arguments: Any) -> Mapping[str, Any]:
        """Plays a whole episode with a model, in a new container if the one before has died."""
        return self._answered(lambda inner: inner.evaluate(limit, **arguments), repeats=False)

    def cancel(self) -> None:
        """Gives up the episodes that ``evaluate`` waits for, in all threads."""
        for inner in list(self._inner.values()):
            inner.cancel()

    def stop(self, episode: str) -> None:
        """Abandons an episode."""
        for inner in list(self._inner.values())[-1:]:
            inner.stop(episode)

    def forget(self) -> None:
        """Makes connections anew."""
        self._inner = {}

    def _answered(self, call: Callable[[Connection], T], repeats: bool = True) -> T:
        """Returns the result of a call that may be made again in a new container.

        ``repeats``: it may also be made again in the same one, which only was too slow.
        """
        failed: Failure | BackendError | None = None
        lost = self._lost
        if not lost:
            try:
                return self._noted(call)
            except (Failure, BackendError) as error:
                lost = self._lost
                if not lost:
                    raise
                failed = error
        try:
            self._use.url(self._lost)
        except BackendError as error:
            if self._inner:
                raise Failure("away", str(error), happened=False) from error
            raise
        self._lost = ""
        if failed is not None and not repeats and self._use.url() == lost:
            raise failed
        return self._noted(call)

    def _noted(self, call: Callable[[Connection], T]) -> T:
        """Returns the result of a call to the container, and notes an address that does not answer."""
        url = self._use.url()
        if url not in self._inner:
            self._inner[url] = Connection(Settings(url, self._settings.timeout))
        try:
            return call(self._inner[url])
        except (Failure, BackendError) as error:
            failure = error if isinstance(error, Failure) else error.__cause__
            if isinstance(failure, Failure) and failure.unreachable:
                self._lost = url
            raise


async def _repeat(call: Callable[[], Awaitable[T]], may_pass: Callable[[Failure], bool]) -> T:
    """Returns the result of a call, which is made again after failures that may pass."""
    for tried in count(1):
        try:
            return await call()
        except Failure as failure:
            if tried == SESSIONS.tries or not may_pass(failure):
                raise
        await asyncio.sleep(SESSIONS.pause(tried))
    raise AssertionError("the last try returns or raises")


def _name_address(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what ``extra`` should say of the address that ``evaluate`` was asked for."""
    asked = {name: arguments[name] for name in ("task_id", "seed") if name in arguments}
    return asked | ({"opponent_type": arguments["opponent"]} if "opponent" in arguments else {})


_lock = threading.Lock()
_connections: dict[Settings, Connection] = {}


def connect(settings: Settings) -> Connection:
    """Returns this process's connection to a server; nothing is sent yet."""
    with _lock:
        if settings not in _connections:
            _connections[settings] = Docked(settings) if settings.container else Connection(settings)
        return _connections[settings]


def _forget() -> None:
    """Forgets the parent's connections in a forked child: their sockets belong to the parent's loop."""
    global _lock
    _lock = threading.Lock()
    for connection in _connections.values():
        connection.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
