"""Replicas: vLLM servers of the same model, each of which can answer any request.

A request that fails is tried again, on another replica if there is one. A replica that is gone is waited for;
when it is back it gets all adapters again before a request names them. So no answer depends on which replica
gave it, but for the rounding of floats.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from gamespiel.agents.models import BASE
from gamespiel.agents.sampling.vllm.server import (
    BrokenAnswerError,
    RefusedError,
    Server,
    ServerError,
    UnreachableError,
    is_unknown_model,
)
from task_gym.remote import loop

log = logging.getLogger(__name__)

AT_ONCE = 64
"""Requests that one replica has at once; vLLM forms its own batches of them."""


@dataclass(frozen=True)
class Patience:
    """How long replicas are waited for.

    Attributes:
        tries: Times that a request is tried on a replica before that counts as gone.
        first: Seconds before the second try; they double with each further one.
        poll: Seconds between two looks at a replica that is gone.
        most: Failures of one request, on replicas that were reached, after which the run stops.
        seconds: Seconds without any replica after which the run stops.
    """

    tries: int = 3
    first: float = 0.2
    poll: float = 1.0
    most: int = 12
    seconds: float = 3600.0


class Job(NamedTuple):
    """A request to ``POST /v1/completions``.

    Attributes:
        adapters: The trainer's name of the adapters.
        body: The request without its model.
    """

    adapters: str
    body: Mapping[str, Any]


class Version(NamedTuple):
    """Adapters as servers know them: a name and a folder, neither of which is ever used again."""

    name: str
    folder: str


@dataclass
class _Replica:
    server: Server
    base: str = ""
    gone: bool = False
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Replicas:
    """Servers of the same model, and the adapters that all of them know.

    Args:
        servers: The servers, at least one.
        prefix: Beginning of the served names of this trainer's adapters, which no other trainer has; None if
            another process loads and unloads them, and this one only names them.
        patience: How long they are waited for.
    """

    def __init__(
        self, servers: Sequence[Server], prefix: str | None, patience: Patience | None = None
    ) -> None:
        self.servers, self.prefix, self.patience = list(servers), prefix, patience or Patience()
        self._replicas = [_Replica(server) for server in servers]
        self._versions: dict[str, Version] = {}
        self._alone_since: float | None = None

    # -- from other threads --------------------------------------------------------------------------------

    def complete(self, jobs: Sequence[Job]) -> list[list[dict[str, Any]]]:
        """Returns the choices of each job. Ctrl-C, or an error, cancels the requests that are under way.

        Raises:
            RefusedError: a server refused a request.
            ServerError: one request fails again and again, or no replica comes back.
        """
        return loop.wait_for(self._complete(jobs)) if jobs else []

    def complete_on_each(self, job: Job) -> dict[str, list[dict[str, Any]]]:
        """Returns a job's choices by the address of each replica that is there."""
        return loop.wait_for(self._complete_on_each(job))

    def publish(self, name: str, version: Version) -> Version | None:
        """Makes all replicas know adapters; returns the version that had this name before.

        Raises:
            RefusedError: a server does not take the adapters.
            ServerError: no replica comes back.
        """
        return loop.wait_for(self._publish(name, version))

    def adopt(self, name: str, version: Version) -> None:
        """Takes adapters that another process has made known to all replicas."""
        self._versions[name] = version

    def forget(self, name: str) -> Version | None:
        """Forgets a name; returns the version that had it."""
        version = self._versions.pop(name, None)
        if version is not None and self.prefix is not None:
            self.unload(version)
        return version

    def unload(self, version: Version) -> None:
        """Makes all replicas forget a version."""
        loop.wait_for(self._on_all(lambda replica: replica.server.unload(version.name)))

    def close(self) -> None:
        """Makes the servers forget this trainer's adapters, and closes all connections."""
        loop.wait_for(self._close())

    # -- on the event loop ---------------------------------------------------------------------------------

    async def _complete(self, jobs: Sequence[Job]) -> list[list[dict[str, Any]]]:
        answers: dict[int, list[dict[str, Any]]] = {}
        failures = [0] * len(jobs)
        waiting: asyncio.Queue[int] = asyncio.Queue()
        for at in range(len(jobs)):
            waiting.put_nowait(at)

        async def work_on(replica: _Replica) -> None:
            """Does jobs on one replica, as long as there are any."""
            while True:
                await self._wait_until_ready(replica)
                at = await waiting.get()
                try:
                    answers[at] = await self._answer(replica, jobs[at])
                except UnreachableError as error:
                    waiting.put_nowait(at)
                    if isinstance(error, BrokenAnswerError):
                        failures[at] += 1
                        if failures[at] >= self.patience.most:
                            raise ServerError(f"{error}; the request failed too often") from error
                    self._note_gone(replica, error)
                if len(answers) == len(jobs):
                    return

        workers = [work_on(replica) for _ in range(min(AT_ONCE, len(jobs))) for replica in self._replicas]
        await _await_first(workers)
        return [answers[at] for at in range(len(jobs))]

    async def _answer(self, replica: _Replica, job: Job) -> list[dict[str, Any]]:
        """Returns a job's choices, after a few tries."""
        if job.adapters != BASE and job.adapters not in self._versions:
            raise ServerError(f"adapters {job.adapters!r} were not published to {replica.server.url}")

        async def complete() -> list[dict[str, Any]]:
            model = replica.base if job.adapters == BASE else self._versions[job.adapters].name
            return await replica.server.complete({"model": model, **job.body})

        async def complete_loaded() -> list[dict[str, Any]]:
            try:
                return await complete()
            except RefusedError as error:
                if not is_unknown_model(error):
                    raise
                # It was started again since, and has forgotten them.
                log.warning("%s does not know the adapters %s: they are loaded again", replica.server.url,
                            job.adapters)  # fmt: skip
                async with replica.lock:
                    await self._restore(replica)
                return await complete()

        return await self._retry(complete_loaded)

    async def _retry(self, call: Callable[[], Awaitable[Any]]) -> Any:
        pause = self.patience.first
        for left in reversed(range(self.patience.tries)):
            try:
                return await call()
            except UnreachableError:
                if not left:
                    raise
                await asyncio.sleep(pause)
                pause *= 2

    def _note_gone(self, replica: _Replica, error: Exception) -> None:
        if replica.gone:
            return
        replica.gone = True
        others = sum(not other.gone for other in self._replicas)
        log.warning("%s; %s", error, f"going on with {others} other" if others else "waiting for it")
        if not others:
            self._alone_since = time.monotonic()

    async def _wait_until_ready(self, replica: _Replica) -> None:
        """Returns when the replica is there and knows all adapters.

        Raises:
            ServerError: there was no replica for too long.
        """
        async with replica.lock:
            if not replica.base:
                await self._greet(replica)
            while replica.gone:
                await asyncio.sleep(self.patience.poll)
                if await replica.server.is_healthy():
                    try:
                        await self._restore(replica)
                        replica.gone, self._alone_since = False, None
                        log.warning("%s is back", replica.server.url)
                        return
                    except UnreachableError:
                        pass  # it went again: the next look tells
                alone = 0.0 if self._alone_since is None else time.monotonic() - self._alone_since
                if alone > self.patience.seconds:
                    raise ServerError(
                        f"no vLLM server came back within {self.patience.seconds:.0f} s: "
                        f"{', '.join(server.url for server in self.servers)}"
                    )

    async def _greet(self, replica: _Replica) -> None:
        try:
            cards = await self._retry(replica.server.list_cards)
            replica.base = cards[0].name
        except UnreachableError as error:
            self._note_gone(replica, error)

    async def _restore(self, replica: _Replica) -> None:
        """Makes a replica know the live versions, and none of this trainer's earlier ones."""
        cards = await replica.server.list_cards()
        replica.base = cards[0].name
        known, live = {card.name for card in cards}, {v.name: v for v in self._versions.values()}
        for name in sorted(known - live.keys()):
            if self._is_own(name):
                await replica.server.unload(name)
        for name in sorted(live.keys() - known):
            await replica.server.load(name, live[name].folder)

    def _is_own(self, name: str) -> bool:
        return self.prefix is not None and name.startswith(self.prefix)

    async def _publish(self, name: str, version: Version) -> Version | None:
        before, self._versions[name] = self._versions.get(name), version
        try:
            await self._on_all(lambda replica: replica.server.load(version.name, version.folder))
            if all(replica.gone for replica in self._replicas):
                await _await_first([self._wait_until_ready(replica) for replica in self._replicas])
        except BaseException:
            if before is None:
                del self._versions[name]
            else:
                self._versions[name] = before
            raise
        return before

    async def _on_all(self, call: Callable[[_Replica], Awaitable[None]]) -> None:
        """Calls every replica that is there; one that fails counts as gone."""

        async def attempt(replica: _Replica) -> None:
            if replica.gone:
                return
            try:
                await self._retry(lambda: call(replica))
            except UnreachableError as error:
                self._note_gone(replica, error)

        await asyncio.gather(*map(attempt, self._replicas))

    async def _complete_on_each(self, job: Job) -> dict[str, list[dict[str, Any]]]:
        answers: dict[str, list[dict[str, Any]]] = {}

        async def ask(replica: _Replica) -> None:
            if not replica.base:
                await self._greet(replica)
            if not replica.gone:
                answers[replica.server.url] = await self._answer(replica, job)

        await self._on_all(ask)
        return answers

    async def _close(self) -> None:
        async def leave(replica: _Replica) -> None:
            try:
                if not replica.gone:
                    for card in await asyncio.wait_for(replica.server.list_cards(), 5):
                        if self._is_own(card.name):
                            await asyncio.wait_for(replica.server.unload(card.name), 5)
            except (ServerError, TimeoutError):
                pass  # the next trainer on this server unloads what a trainer left
            await replica.server.close()

        await asyncio.gather(*map(leave, self._replicas))
        self._versions.clear()


async def _await_first(calls: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Waits until a call has ended, and cancels the others; raises its error, if none has succeeded."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        min(done, key=lambda task: task.exception() is not None).result()
    finally:
        for task in tasks:
            task.cancel()
        # Cancelled requests close their connections, by which servers know that nobody waits.
        await asyncio.gather(*tasks, return_exceptions=True)
