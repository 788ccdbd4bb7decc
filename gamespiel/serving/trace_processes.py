"""Traces of a data set, made in processes that are ended if their caller leaves.

A row may sleep, and is given up after its time only. In one process it would hold up the rows of all callers,
because a sandbox runs one program after the other. As many sleeping rows as there are processes would do so,
too; so a caller has a part of them.
"""

from __future__ import annotations

import threading
from collections import Counter
from functools import lru_cache, partial
from typing import NamedTuple

from task_gym.caller import CALLER, Caller
from task_gym.errors import BackendError, TaskGymError
from task_gym.processes import EndedError, Nursery, Pool
from trace_gym.backends import Trace, make_backend
from trace_gym.programs.sources import open_source

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
        self._pool = Pool(Nursery(("trace_gym.backends",), partial(open_source, source)), SPARE)
        self._places, self._trying = threading.Condition(), Counter[str]()  # by caller
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
        self._pool.close()

    def _make(self, task_id: int) -> Trace:
        caller = CALLER.get() or Caller()
        with self._places:
            while self._trying.total() >= PROCESSES or self._trying[caller.name] >= EACH:
                self._places.wait(_LOOK_S)
                caller.require_presence()
            self._trying[caller.name] += 1
        try:
            request = Load(self._source, self._injector, task_id)
            answer, failure, _ = self._pool.ask(request, float("inf"), caller)
        except EndedError as error:
            raise BackendError(
                f"task id: {task_id} was given, whose program ended the process: {error}"
            ) from error
        except OSError as error:
            raise BackendError(f"no process for a program can be started: {error}") from error
        finally:
            with self._places:
                self._trying -= Counter([caller.name])
                self._places.notify_all()
        if failure:
            raise BackendError(f"task id: {task_id} was given, and its program cannot be shown: {failure}")
        if isinstance(answer, TaskGymError):
            raise answer
        trace: Trace = answer
        return trace
