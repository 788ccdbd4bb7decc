"""Traces of a data set, made in processes that are ended if their caller leaves.

A row may sleep, and is given up after its time only. In one process it would hold up the rows of all callers,
because a sandbox runs one program after the other. As many sleeping rows as there are processes would do so,
too; so a caller has a part of them.
"""

from __future__ import annotations

import threading
from collections import Counter
from functools import lru_cache
from typing import Any, NamedTuple

from task_gym.caller import CALLER, Caller, CallerLeftError
from task_gym.errors import BackendError, TaskGymError
from task_gym.processes import EndedError, Forked, Nursery, Preparation
from trace_gym.backends import Trace, make_backend

PROCESSES, EACH = 12, 6
"""Rows that are tried at once, of all callers and of one. Each process has a sandbox of its own."""

SPARE = 4
"""The most idle processes that are kept, with their sandboxes' workers."""

KEPT = 8192
"""Number of traces kept."""

_LOOK_S = 0.2
"""Seconds between two looks at whether a trace that waits for a process is still wanted."""


class Load(NamedTuple):
    """A request for the trace of a task id, or for the error that it is."""

    source: str
    injector: str
    task_id: int

    def answer(self) -> Trace | TaskGymError:
        """Makes the trace; called in the other process."""
        try:
            return make_backend(self.source, self.injector, False).load(self.task_id)
        except TaskGymError as error:
            return error


class TraceProcesses:
    """A backend of ``trace_gym``, safe to use from several threads.

    Args:
        source: The source of the programs.
        injector: Who puts debug prints into them.
        name: The name that means the same programs everywhere.
    """

    def __init__(self, source: str, injector: str, name: str) -> None:
        self._source, self._injector, self.source = source, injector, name
        self._nursery = Nursery(
            ("trace_gym.backends",), [Preparation("trace_gym.programs.sources", "open_source", (source,))]
        )
        self._lock = threading.Lock()
        self._places, self._trying = threading.Condition(), Counter[str]()  # by caller
        self._spare: list[Forked] = []
        self._load = lru_cache(KEPT)(self._make)

    def load(self, task_id: int) -> Trace:
        """Returns the trace of a task id.

        Raises:
            AdmissionError, SourceError: as the local backend does.
            BackendError: its process has ended.
            CallerLeftError: the caller has left.
        """
        return self._load(task_id)

    def close(self) -> None:
        """Does nothing: other episodes share the processes."""

    def end(self) -> None:
        """Ends the processes; they start again when needed."""
        with self._lock:
            self._spare.clear()
        self._nursery.close()

    def _make(self, task_id: int) -> Trace:
        caller = CALLER.get() or Caller()
        with self._places:
            while self._trying.total() >= PROCESSES or self._trying[caller.name] >= EACH:
                self._places.wait(_LOOK_S)
                caller.require_presence()
            self._trying[caller.name] += 1
        try:
            answer, failure, process = self._ask(task_id, caller)
        finally:
            with self._places:
                self._trying -= Counter([caller.name])
                self._places.notify_all()
        with self._lock:
            is_spare = not failure and len(self._spare) < SPARE
            if is_spare:
                self._spare.append(process)
        if not is_spare:
            process.end()
        if failure:
            raise BackendError(f"task id: {task_id} was given, and its program cannot be shown: {failure}")
        if isinstance(answer, TaskGymError):
            raise answer
        trace: Trace = answer
        return trace

    def _ask(self, task_id: int, caller: Caller) -> tuple[Any, str, Forked]:
        """Returns the answer, or what failed, and the process that it came from."""
        request = Load(self._source, self._injector, task_id)
        for tried in range(2):
            with self._lock:
                idle = self._spare.pop() if self._spare and not tried else None
            try:
                process = idle or self._nursery.fork()
                with caller.ending(process.end):
                    answer, failure, _ = process.ask(request, float("inf"))
                return answer, failure, process
            except EndedError as error:
                caller.require_presence()
                if idle is None:
                    raise BackendError(
                        f"task id: {task_id} was given, whose program ended the process: {error}"
                    ) from error
                # It may have ended while it was idle: a new one is asked.
            except CallerLeftError:
                process.end()
                raise
        raise AssertionError("the second try returns or raises")
