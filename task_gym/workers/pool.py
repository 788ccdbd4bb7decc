"""Workers that play groups of environments: what a lost one played is played again, elsewhere.

Each worker has a thread here, which asks it and nobody else. A call waits for the worker that has its slot.
If a worker is lost, its calls go to the others, and its thread starts a new one.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from operator import add
from typing import NamedTuple

from task_gym.arguments import check_least
from task_gym.workers.group import Call, Frame, MakeEnv
from task_gym.workers.requests import (
    Advance,
    LostError,
    NoRoomError,
    Worker,
    WorkerLauncher,
    WorkersError,
    pack,
    unpack,
)

LOG = logging.getLogger(__name__)

STEP_SECONDS = 600.0
"""Seconds without an answer after which a worker is ended, unless others are asked for."""

MOST_LOSSES = 3
"""Workers that may be lost with a turn, the last of which is an error."""

ASK_SECONDS = 0.5
"""About how long an answer may take whose turns were as fast as those before: a slow one has few turns."""

REST_SECONDS = 30.0
"""Seconds after which a worker that could not be started is tried again."""

CLOSE_SECONDS = 10.0
"""Seconds that a closed pool waits for a worker that is just being started, and then ended."""


class Counts(NamedTuple):
    """Counts of lost workers, and of what their loss cost.

    Attributes:
        workers_lost: Workers that ended, or were ended.
        games_replayed: Episodes that were played again.
        steps_replayed: Steps of these episodes that were made once more.
        replay_seconds: Seconds that they took, searches of opponents included.
    """

    workers_lost: int = 0
    games_replayed: int = 0
    steps_replayed: int = 0
    replay_seconds: float = 0.0

    def plus(self, other: Counts) -> Counts:
        """Returns the sums."""
        return Counts(*map(add, self, other))


@dataclass(eq=False)
class _Ticket:
    """A call that waits for its turn."""

    group: RemoteGroup
    call: Call | None  # None to forget the group
    turn: Future[Frame] = field(default_factory=Future)  # cancelled if nobody wants it any more
    losses: int = 0

    def finish(self, turn: Frame | Exception) -> None:
        """Sets the turn, unless there is one or it was given up."""
        if self.turn.done():
            return
        if isinstance(turn, Exception):
            self.turn.set_exception(turn)
        else:
            self.turn.set_result(turn)


@dataclass(eq=False)
class _Line:
    """A worker, and the calls that wait for it."""

    number: int
    worker: Worker | None = None
    is_down: bool = False
    waiting: deque[_Ticket] = field(default_factory=deque)
    busy: list[_Ticket] = field(default_factory=list)
    known: set[int] = field(default_factory=set)  # groups that the worker has
    played: set[tuple[int, int]] = field(default_factory=set)  # groups and slots that it has played
    pace: float = ASK_SECONDS  # seconds of a turn, as of the last answer

    def forget_worker(self) -> None:
        """Notes that the worker is lost, with all that it had."""
        self.worker, self.is_down, self.pace = None, True, ASK_SECONDS
        self.known.clear()
        self.played.clear()

    def count_steps(self) -> int:
        """Returns the most steps of an environment that the request makes one after the other."""
        calls = [(ticket.group.number, ticket.call) for ticket in self.busy if ticket.call is not None]
        return 1 + sum(len(call.actions) for group, call in calls if (group, call.slot) not in self.played)

    def take(self) -> list[_Ticket]:
        """Takes the calls of the next request: of one group, and one alone that may have ended a worker."""
        first = self.waiting.popleft()
        taken = [first]
        if first.call is None or first.losses:
            return taken
        most = 1 + len(self.waiting) if first.group.waits else int(ASK_SECONDS / max(self.pace, 1e-6))
        while self.waiting and len(taken) < most:
            ticket = self.waiting[0]
            if ticket.group is not first.group or ticket.call is None or ticket.losses:
                break
            taken.append(self.waiting.popleft())
        return taken


class WorkerPool:
    """So many workers of a launcher. They are started when they are first needed.

    Args:
        launcher: Starts the workers.
        size: Number of workers.
        seconds: Seconds without an answer after which a worker is ended.

    Raises:
        ArgumentError: it has no workers.
    """

    def __init__(self, launcher: WorkerLauncher, size: int, *, seconds: float = STEP_SECONDS) -> None:
        self.launcher, self.size, self.seconds = launcher, check_least("workers", size, 1), seconds
        self._changed = threading.Condition()
        self._lines = [_Line(number) for number in range(size)]
        self._threads: list[threading.Thread] = []
        self._counts, self._closed, self._why_down = Counts(), False, ""
        atexit.register(self.close)

    def take_counts(self) -> Counts:
        """Returns what went wrong since the last call."""
        with self._changed:
            counts, self._counts = self._counts, Counts()
        return counts

    def close(self) -> None:
        """Ends the workers. What waits for them is an error; nothing is started afterwards."""
        atexit.unregister(self.close)
        with self._changed:
            self._closed = True
            workers = [line.worker for line in self._lines if line.worker is not None]
            for line in self._lines:
                for ticket in (*line.waiting, *line.busy):
                    ticket.finish(WorkersError("environments in workers: they were closed"))
                line.waiting.clear()
            self._changed.notify_all()
        for worker in workers:
            worker.end()
        self.launcher.close()
        for thread in self._threads:
            if thread is not threading.current_thread():  # which may collect a pool that is garbage
                thread.join(CLOSE_SECONDS)

    # -- for groups ----------------------------------------------------------------------------------------

    def submit(self, tickets: Sequence[_Ticket]) -> None:
        """Gives calls to workers: a slot's to the worker that has it, first turns to all alike."""
        with self._changed:
            if self._closed:
                raise WorkersError("environments in workers: a call was made after they were closed")
            self._start_threads()
            up = [line for line in self._lines if not line.is_down] or self._lines
            for place, ticket in enumerate(tickets):
                call, homes = ticket.call, ticket.group.homes
                assert call is not None
                line = homes.get(call.slot)
                if line is None or not call.actions or line.is_down:
                    line = homes[call.slot] = up[place % len(up)]
                    line.played.discard((ticket.group.number, call.slot))
                line.waiting.append(ticket)
            self._changed.notify_all()

    def give_up(self, tickets: Sequence[_Ticket], *, join: bool) -> None:
        """Takes back calls that have not begun; ``join`` waits for those that have."""
        with self._changed:
            for ticket in tickets:
                ticket.turn.cancel()
            for line in self._lines:
                line.waiting = deque(ticket for ticket in line.waiting if not ticket.turn.cancelled())
            while join and not self._closed and self._plays_unwanted():
                self._changed.wait()

    def _plays_unwanted(self) -> bool:
        return any(ticket.turn.cancelled() for line in self._lines for ticket in line.busy)

    def forget(self, group: RemoteGroup) -> None:
        """Closes a group in the workers that have it."""
        with self._changed:
            for line in self._lines:
                if group.number in line.known:
                    line.waiting.append(_Ticket(group, None))
            self._changed.notify_all()

    # -- a worker's thread ---------------------------------------------------------------------------------

    def _start_threads(self) -> None:
        if not self._threads:
            for line in self._lines:
                name = f"{type(self).__name__}-{line.number}"
                thread = threading.Thread(target=self._run, args=(line,), name=name, daemon=True)
                self._threads.append(thread)
                thread.start()

    def _run(self, line: _Line) -> None:
        while True:
            if line.is_down and not self._closed and not self._start(line):
                self._rest(line)
                continue
            with self._changed:
                while not line.waiting and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                if line.worker is not None:
                    line.busy = line.take()
            if line.worker is None:
                line.is_down = not self._start(line)
                continue
            self._ask(line)

    def _ask(self, line: _Line) -> None:
        """Has the worker play the calls that were taken."""
        first, worker, began = line.busy[0], line.worker, time.monotonic()
        assert worker is not None
        number, calls = first.group.number, [ticket.call for ticket in line.busy if ticket.call is not None]
        parcel = None if number in line.known or not calls else first.group.parcel
        # Each step of an episode that is played again may take as long as the one that is new.
        seconds = self.seconds * line.count_steps()
        try:
            answer = worker.ask(Advance(number, calls, parcel, forgotten=first.call is None), seconds)
            turns = unpack(answer)
            if len(turns) != len(calls):
                raise WorkersError(f"{self.launcher.name}: {len(turns)} turns came for {len(calls)} calls")
        except LostError as error:
            self._lose(line, str(error))
            return
        except Exception as error:
            turns = [error] * len(calls)
        with self._changed:
            (line.known.add if calls else line.known.discard)(number)
            line.played.update((number, call.slot) for call in calls)
            for ticket, one in zip(line.busy, turns, strict=bool(calls)):
                ticket.finish(one)
                if isinstance(one, Frame) and one.replayed:
                    self._counts = self._counts.plus(Counts(0, 1, one.replayed, one.replay_seconds))
            line.pace = (time.monotonic() - began) / len(line.busy)
            line.busy = []
            self._changed.notify_all()

    def _lose(self, line: _Line, why: str) -> None:
        """Leaves a lost worker, and has others play what it was asked."""
        with self._changed:
            if self._closed:
                return
            LOG.warning("%s: its episodes are played again", why)
            self._counts = self._counts.plus(Counts(workers_lost=1))
            self._why_down = why
            line.forget_worker()
            again = [ticket for ticket in line.busy if ticket.call is not None and not ticket.turn.done()]
            line.busy = []
            for ticket in again:
                ticket.losses += 1
                if ticket.losses >= MOST_LOSSES:
                    ticket.finish(_too_many(ticket, why))
            others = [ticket for ticket in line.waiting if ticket.call is not None]
            line.waiting = deque([*(ticket for ticket in again if not ticket.turn.done()), *others])
            self._move(line)
            self._changed.notify_all()

    def _move(self, line: _Line) -> None:
        """Gives the calls of a worker that is down to those that are up, if there are any."""
        up = [other for other in self._lines if not other.is_down]
        while up and line.waiting:
            ticket = line.waiting.popleft()
            assert ticket.call is not None
            other = up[ticket.call.slot % len(up)]
            ticket.group.homes[ticket.call.slot] = other
            other.played.discard((ticket.group.number, ticket.call.slot))
            other.waiting.append(ticket)

    def _start(self, line: _Line) -> bool:
        """Starts a worker; returns whether there is one. Without any, all calls are errors."""
        try:
            worker = self.launcher.start()
        except Exception as error:
            why = str(error) if isinstance(error, NoRoomError) else f"{type(error).__name__}: {error}"
            with self._changed:
                line.is_down = True
                self._move(line)
                lost = f"; the last one was lost: {self._why_down}" if self._why_down else ""
                counts = f"0 of {self.size} workers are there, needed: 1"
                for ticket in line.waiting:
                    ticket.finish(WorkersError(f"{self.launcher.name}: {counts}; {why}{lost}"))
                line.waiting.clear()
                self._changed.notify_all()
            return False
        with self._changed:
            line.worker, line.is_down = worker, False
            if not self._closed:
                for other in self._lines:
                    if other.is_down:
                        self._move(other)
                self._changed.notify_all()
                return True
        worker.end()
        return True

    def _rest(self, line: _Line) -> None:
        """Waits before the next try to start a worker; calls that nobody else can take end the wait."""
        end = time.monotonic() + REST_SECONDS
        with self._changed:
            while not self._closed and not line.waiting and (left := end - time.monotonic()) > 0:
                self._changed.wait(left)


class RemoteGroup:
    """A group of environments that a pool's workers play.

    Args:
        pool: The pool.
        env_fns: Functions that each make an environment, by slot.
        waits: Whether the environments wait for a server, so that each has a thread of its worker.

    Attributes:
        homes: The worker that has a slot, for the pool.
    """

    _numbers = count()

    def __init__(self, pool: WorkerPool, env_fns: Sequence[MakeEnv], *, waits: bool = False) -> None:
        self.pool, self.waits, self.number = pool, waits, next(self._numbers)
        self.parcel = pack(env_fns, waits=waits)
        self.homes: dict[int, _Line] = {}
        self._open: set[_Ticket] = set()

    def advance(self, calls: Sequence[Call]) -> Iterator[Frame]:
        """Begins calls at once; returns their turns, in order.

        Raises:
            WorkersError: no worker can be had, or a turn ended several.
        """
        tickets = [_Ticket(self, call) for call in calls]
        self.pool.submit(tickets)
        self._open.update(tickets)
        return self._take(tickets)

    def give_up(self, *, join: bool = False) -> None:
        """Gives up the calls whose turns nobody has taken; ``join`` waits for those that have begun."""
        tickets, self._open = list(self._open), set()
        self.pool.give_up(tickets, join=join)

    def close(self) -> None:
        """Closes the environments."""
        self.give_up()
        self.pool.forget(self)

    def _take(self, tickets: Sequence[_Ticket]) -> Iterator[Frame]:
        for ticket in tickets:
            try:
                frame = ticket.turn.result()
            except Exception:
                self.give_up(join=True)
                raise
            self._open.discard(ticket)
            yield frame


def _too_many(ticket: _Ticket, why: str) -> WorkersError:
    call = ticket.call
    assert call is not None
    return WorkersError(
        f"environments in workers: {ticket.losses} workers were lost with one turn, allowed: "
        f"{MOST_LOSSES - 1}; it is the turn after {len(call.actions)} actions of the episode with seed "
        f"{call.seed!r:.60} and options {call.options!r:.200}; the last one: {why}"
    )
