"""Pools of warm workers, and single runs of programs."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from types import TracebackType

from task_gym.errors import ArgumentError

from .execution import Execution, wait
from .probe import choose
from .shapes import Job, Limits, Result
from .worker import Worker

_sandboxes: weakref.WeakSet[Sandbox] = weakref.WeakSet()


class Sandbox:
    """A pool of warm workers for untrusted programs, one worker per hash seed.

    Workers start at first use. They start again after a worker has died, and in a forked process. They end
    with ``close``, with the block of a ``with`` statement, with the object, and with the process. One thread
    at a time runs programs; others wait for it.

    Args:
        hash_seeds: The hash seeds for programs (0 to 2**32 - 1). The first is the default.
        limits: The limits of each program; None: ``Limits()``.
        require: The weakest level to accept. "limits" accepts the risk of running without protection.
        level: The level to run at; None: the strongest that this machine has.

    Raises:
        ArgumentError: the hash seeds are not allowed, or there is no such level.
        SandboxError: this machine does not have the level.
    """

    def __init__(
        self,
        hash_seeds: Sequence[int] = (0,),
        *,
        limits: Limits | None = None,
        require: str = "namespaces",
        level: str | None = None,
    ) -> None:
        self.hash_seeds = tuple(hash_seeds)
        if not self.hash_seeds:
            raise ArgumentError("sandbox: no hash seeds were given, allowed: one or more")
        for seed in self.hash_seeds:
            if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**32:
                raise ArgumentError(f"sandbox: hash seed {seed!r} was given, allowed: 0 to {2**32 - 1}")
        self.limits = Limits() if limits is None else limits
        self.level = choose(level, require)
        """The level in force."""
        self._workers: dict[int, Worker] = {}
        # Reentrant, because a signal's handler may close what its thread is running in.
        self._lock = threading.RLock()
        _sandboxes.add(self)

    def run(self, program: str, stdin: str = "", *, hash_seed: int | None = None) -> Result:
        """Runs one program and returns its result; see ``trace_gym.sandbox.run``."""
        return self.run_many([Job(program, stdin, hash_seed)])[0]

    def run_many(self, jobs: Iterable[Job]) -> list[Result]:
        """Runs programs and returns their results in the same order.

        Programs under one hash seed run one after the other; those under different ones run side by side.
        """
        jobs = list(jobs)
        for job in jobs:
            self._seed(job)  # none runs if one has a mistake
        results: list[Result] = []
        self.run_until(jobs, results.append)
        return results

    def run_until(self, jobs: Iterable[Job], done: Callable[[Result], bool | None]) -> None:
        """Runs programs until ``done`` returns True.

        Neither argument may run anything in this sandbox.

        Args:
            jobs: The programs. They are taken while others run, at most two per hash seed ahead. An error in
                making a job is raised after the results of earlier jobs.
            done: A function that gets the results in the order of the jobs, and returns True to stop. The
                programs that still run are then ended.
        """
        with self._lock, contextlib.closing(self._results(jobs)) as results:
            for result in results:
                if done(result):
                    return

    def _results(self, jobs: Iterable[Job]) -> Generator[Result]:
        """Yields the results in the order of the jobs, whichever program ends first."""
        untaken: Iterator[Job] | None = iter(jobs)
        failure: Exception | None = None  # to make a job, which ends the jobs
        waiting: dict[int, deque[tuple[int, Job]]] = {seed: deque() for seed in self.hash_seeds}
        running: dict[int, tuple[Execution, int, Job]] = {}
        ended: dict[int, Execution] = {}
        lost: set[int] = set()
        taken = next_index = 0
        try:
            while untaken is not None or running or any(waiting.values()):
                room = untaken is not None and taken - next_index < 2 * len(self.hash_seeds)
                if untaken is not None and room:
                    try:
                        job = next(untaken)
                        waiting[self._seed(job)].append((taken, job))
                        taken += 1
                    except StopIteration:
                        untaken = None
                    except Exception as error:
                        untaken, failure = None, error
                for seed, queue in waiting.items():
                    if queue and seed not in running:
                        index, job = queue.popleft()
                        running[seed] = self._submit(seed, job), index, job
                if room or not running:
                    continue
                wait([execution for execution, _, _ in running.values()])
                for seed, (execution, index, job) in list(running.items()):
                    if not execution.done:
                        continue
                    del running[seed]
                    if execution.lost and index not in lost:  # once more, on a new worker
                        lost.add(index)
                        waiting[seed].appendleft((index, job))
                    else:
                        ended[index] = execution
                while next_index in ended:
                    next_index += 1
                    yield ended.pop(next_index - 1).result()
            if failure is not None:
                raise failure
        except GeneratorExit:  # nobody needs the others: end them and keep the workers
            for execution, _, _ in running.values():
                execution.stop("killed")
            while left := [execution for execution, _, _ in running.values() if not execution.done]:
                wait(left)
            raise
        finally:
            for execution, _, _ in running.values():
                execution.abandon()

    def _seed(self, job: Job) -> int:
        for name in ("program", "stdin"):
            if not isinstance(getattr(job, name), str):
                raise ArgumentError(f"sandbox: {name}={getattr(job, name)!r} was given, allowed: a str")
        if job.hash_seed is None:
            return self.hash_seeds[0]
        if job.hash_seed not in self.hash_seeds:
            allowed = ", ".join(map(str, self.hash_seeds))
            raise ArgumentError(f"sandbox: hash_seed={job.hash_seed!r} was given, allowed here: {allowed}")
        return job.hash_seed

    def _submit(self, seed: int, job: Job) -> Execution:
        worker = self._workers.get(seed)
        # One that is not free was left by an interrupt, between its program's begin and the note of it here.
        if worker is not None and worker.is_free and worker.alive:
            with contextlib.suppress(ConnectionError):  # it died just now
                return Execution(worker, job.program, job.stdin, self.limits)
        if worker is not None:
            worker.close()
        worker = self._workers[seed] = Worker(self.level, seed)
        return Execution(worker, job.program, job.stdin, self.limits)

    def close(self) -> None:
        """Ends the workers, after the run of another thread. The next run starts new ones."""
        with self._lock:
            while self._workers:
                self._workers.popitem()[1].close()

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _forget_workers() -> None:
    """Drops all workers in a forked process: they are the parent's."""
    for sandbox in list(_sandboxes):
        sandbox._lock = threading.RLock()
        sandbox.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)


def run(
    program: str,
    stdin: str = "",
    *,
    limits: Limits | None = None,
    hash_seed: int = 0,
    require: str = "namespaces",
    level: str | None = None,
) -> Result:
    """Runs one program in its own sandbox, and leaves nothing of it behind.

    Many programs run faster on a ``Sandbox``.

    Args:
        program: The text of a Python program, run as ``python FILE`` does, under the same version.
        stdin: Its standard input.
        limits: Its limits; None: ``Limits()``.
        hash_seed: The seed of string hashes, and so of the order of sets (PYTHONHASHSEED; 0 to 2**32 - 1).
        require: The weakest level to accept. "limits" accepts the risk of running without protection.
        level: The level to run at; None: the strongest that this machine has.

    Raises:
        ArgumentError: an argument is not allowed.
        SandboxError: this machine does not have the level.
    """
    with Sandbox((hash_seed,), limits=limits, require=require, level=level) as sandbox:
        return sandbox.run(program, stdin)
