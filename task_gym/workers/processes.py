"""Workers that are processes of this machine: they end with the process that asks, however it ends."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from math import inf

from task_gym.processes import OFFERED, EndedError, Forked, Nursery
from task_gym.workers.requests import Advance, LostError, NoRoomError, WorkerLauncher, WorkersError


class ProcessLauncher:
    """Forks workers from a process that has imported modules: the fork takes milliseconds, and shares memory.

    Args:
        modules: The modules that workers need.

    Raises:
        WorkersError: this system has no such processes.
    """

    name = "worker processes"

    def __init__(self, modules: Sequence[str] = ()) -> None:
        if not OFFERED:
            raise WorkersError(
                f"environments in worker processes: {sys.platform} was given, allowed: Linux and macOS; "
                "elsewhere environments share this process (run.env_workers: 0)"
            )
        self._nursery = Nursery((__name__, *modules))
        self._closed = threading.Event()

    def start(self) -> ProcessWorker:
        """Returns a new worker.

        Raises:
            NoRoomError: the system starts no further process, or nobody wants one any more.
        """
        try:
            if not self._closed.is_set():
                worker = ProcessWorker(self._nursery.fork())
                if not self._closed.is_set():
                    return worker
                self._nursery.close()  # ``close`` came before the fork, which began a new one
        except OSError as error:
            raise NoRoomError(f"no process could be started: {error}") from error
        raise NoRoomError("no process could be started: they were closed")

    def close(self) -> None:
        """Ends all workers; none is started afterwards."""
        self._closed.set()
        self._nursery.close()


class ProcessWorker:
    """A worker in a process of its own.

    Attributes:
        pid: Its process id.
    """

    def __init__(self, process: Forked) -> None:
        self._process, self.pid = process, process.pid

    def ask(self, request: Advance, seconds: float) -> bytes:
        """Returns the request's answer.

        Raises:
            LostError: the process has ended, or was ended.
            WorkersError: it could not read the request.
        """
        try:
            answer, failure, _ = self._process.ask(request, inf, seconds)
        except EndedError as error:
            why = (
                f"had no answer for {seconds:g} s"
                if error.was_silent
                else f"ended with status {error.status}"
            )
            raise LostError(f"worker process {self.pid} {why}") from error
        if failure:
            raise WorkersError(f"environments in worker processes: a request failed: {failure}")
        assert isinstance(answer, bytes)
        return answer

    def end(self) -> None:
        """Ends the process at once."""
        self._process.end()


def make_launcher(address: str | None, modules: Sequence[str] = ()) -> WorkerLauncher:
    """Returns what starts workers: on this machine, or on the Ray cluster of an address."""
    if address is None:
        return ProcessLauncher(modules)
    from task_gym.workers.ray_actors import RayLauncher

    return RayLauncher(address)
