"""Workers that are actors of a Ray cluster: ``pip install 'gamespiel[ray]'``, on every node of it.

Ray never tries a call again (``max_task_retries=0``) and starts no actor again: a new one would be without
its environments. The pool has others play the episodes again.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from typing import Any

from task_gym.errors import MissingPackageError
from task_gym.workers.requests import Advance, LostError, NoRoomError, WorkersError

START_SECONDS = 120.0
"""Seconds in which the cluster must have started an actor."""

CLOSED = "the connection to Ray was closed"

LOOK_SECONDS = 0.5
"""Seconds after which a start looks whether it is still wanted."""

REACH_SECONDS = 10.0
"""Seconds in which the cluster's address must accept a connection."""


class _Player:
    """The actor: it answers requests, one after the other."""

    def pid(self) -> int:
        return os.getpid()

    def answer(self, request: Advance) -> bytes:
        return request.answer()


class RayLauncher:
    """Starts workers on a Ray cluster, each on a CPU of its own.

    Args:
        address: "auto" for the cluster of this machine, or "host:6379". This machine must be a node of it.
        seconds: Seconds in which the cluster must have started a worker, as when no node has a CPU left.

    Raises:
        MissingPackageError: Ray is not installed.
        WorkersError: there is no such cluster.
    """

    name = "workers on Ray"

    def __init__(self, address: str, *, seconds: float = START_SECONDS) -> None:
        self._ray, self._seconds = _connect(address), seconds
        self._closed = threading.Event()
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        self._player = self._ray.remote(
            num_cpus=1,
            max_restarts=0,
            max_task_retries=0,
            # A node that has the same folders, as this machine, then has the same modules.
            runtime_env={"env_vars": {"PYTHONPATH": paths}},
        )(_Player)

    def start(self) -> RayWorker:
        """Returns a new worker.

        Raises:
            NoRoomError: no node has a CPU for it in time, or nobody wants it any more.
        """
        if self._is_over():
            raise NoRoomError(f"no actor could be started: {CLOSED}")
        actor = self._player.remote()
        try:
            pid = self._wait_for(actor.pid.remote())
        except Exception as error:
            _kill(self._ray, actor)
            why = str(error) if isinstance(error, NoRoomError) else f"{type(error).__name__}: {error}"
            raise NoRoomError(f"no actor could be started: {why}") from error
        return RayWorker(self._ray, actor, pid)

    def close(self) -> None:
        """Has starts end that wait for a CPU: the pool ends each worker."""
        self._closed.set()

    def _wait_for(self, answer: Any) -> int:
        end = time.monotonic() + self._seconds
        while not self._is_over():
            left = end - time.monotonic()
            try:
                pid: int = self._ray.get(answer, timeout=max(0.0, min(left, LOOK_SECONDS)))
                return pid
            except self._ray.exceptions.GetTimeoutError:
                if left <= LOOK_SECONDS:
                    raise NoRoomError(f"no node had a CPU for it in {self._seconds:g} s") from None
            except SystemExit:  # what Ray raises in a thread that waits when the connection is closed
                break
        raise NoRoomError(CLOSED)

    def _is_over(self) -> bool:
        return self._closed.is_set() or not self._ray.is_initialized()


class RayWorker:
    """A worker in an actor.

    Attributes:
        pid: Its process id on its node.
    """

    def __init__(self, ray: Any, actor: Any, pid: int) -> None:
        self._ray, self._actor, self.pid = ray, actor, pid

    def ask(self, request: Advance, seconds: float) -> bytes:
        """Returns the request's answer.

        Raises:
            LostError: the actor has ended, or was ended.
        """
        errors = self._ray.exceptions
        if not self._ray.is_initialized():
            raise LostError(f"worker {self.pid} on Ray: {CLOSED}")
        try:
            answer: bytes = self._ray.get(self._actor.answer.remote(request), timeout=seconds)
        except errors.GetTimeoutError as error:
            self.end()
            raise LostError(f"worker {self.pid} on Ray had no answer for {seconds:g} s") from error
        except SystemExit:
            raise LostError(f"worker {self.pid} on Ray: {CLOSED}") from None
        except errors.RayTaskError:
            raise  # an error of the request itself
        except errors.RayError as error:
            self.end()
            raise LostError(f"worker {self.pid} on Ray ended: {_first_line(error)}") from error
        return answer

    def end(self) -> None:
        """Ends the actor at once."""
        _kill(self._ray, self._actor)


def _kill(ray: Any, actor: Any) -> None:
    """Ends an actor. Without a connection it has ended, and a call would make a new one by itself."""
    if ray.is_initialized():
        ray.kill(actor)


def _connect(address: str) -> Any:
    """Returns Ray, connected to a cluster; a connection of the caller's own stays.

    Ray would report its use, and would take SIGTERM from the trainer's own handler.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    here = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        _check_reachable(address)
        import ray

        if not ray.is_initialized():
            ray.init(address=address, log_to_driver=False, logging_level="error")
    except ImportError as error:
        raise MissingPackageError(
            f"workers on Ray: the package ray cannot be imported ({error}); pip install 'gamespiel[ray]'"
        ) from error
    except (OSError, RuntimeError, ValueError) as error:
        raise WorkersError(
            f"workers on Ray: the address {address!r} was given, and there is no such cluster "
            f"({_first_line(error)}); start one with: ray start --head"
        ) from error
    finally:
        if here:
            signal.signal(signal.SIGTERM, handler)
    return ray


def _check_reachable(address: str) -> None:
    """Raises OSError if nobody listens there: Ray itself tries for minutes."""
    host, _, port = address.rpartition(":")
    if host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_SECONDS).close()


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
