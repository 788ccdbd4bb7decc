"""Processes that answer requests and can be ended at any moment: their asker may leave.

A nursery is one process that has imported what is needed. It forks a new process in some milliseconds, which
shares its memory. If the process that asks ends, however it ends, its nursery and all their processes end.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from math import isfinite
from multiprocessing.connection import Connection
from threading import Lock, local
from typing import Any, Protocol

from task_gym.caller import Caller

OFFERED = hasattr(os, "fork") and hasattr(socket, "send_fds")
"""Whether this system has such processes: not Windows."""


class Request(Protocol):
    """A request to another process. It must be picklable."""

    def answer(self) -> Any:
        """Returns the answer; called in the other process."""


class EndedError(Exception):
    """A process that ended before it answered.

    Attributes:
        status: Its exit status, negative for a signal's number; None if it is not known.
        was_silent: Whether it was ended because it had not answered for too long.
    """

    def __init__(self, status: int | None, *, was_silent: bool = False) -> None:
        super().__init__(f"the process ended with status {status}")
        self.status, self.was_silent = status, was_silent

    @property
    def is_late(self) -> bool:
        """Whether it had taken all the processor time that it was given."""
        return self.status == -signal.SIGPROF


class Forked:
    """A forked process, for one asker at a time.

    Attributes:
        parent: The process that it was forked from.
        pid: Its process id.
        status: Its exit status, once the nursery has reaped it.
    """

    status: int | None = None

    def __init__(
        self, nursery: Nursery, parent: subprocess.Popen[bytes], pid: int, stream: socket.socket
    ) -> None:
        self._nursery, self.parent, self.pid, self._stream = nursery, parent, pid, stream
        self._file = stream.makefile("rwb")
        self._ended = False
        self._lock = Lock()

    def ask(self, request: Request, seconds: float, patience: float | None = None) -> tuple[Any, str, float]:
        """Returns the answer, or what failed, and the processor time that it took.

        Args:
            request: The request.
            seconds: The processor time after which the kernel ends the process.
            patience: The seconds without an answer after which this ends the process; None for no limit.

        Raises:
            EndedError: the process has ended.
        """
        try:
            # A time-out leaves the file useless, and then the process is ended.
            self._stream.settimeout(patience)
            pickle.dump((seconds, request), self._file)
            self._file.flush()
            answered: tuple[Any, str, float] = pickle.load(self._file)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError) as error:
            self.end()
            silent = isinstance(error, TimeoutError)
            self._nursery.reap()
            raise EndedError(self.status, was_silent=silent) from error
        except BaseException:  # such as Ctrl-C: the next answer would be this one's
            self.end()
            raise
        return answered

    def end(self) -> None:
        """Ends the process at once; a thread that asks gets EndedError. It may be called more than once."""
        with self._lock:  # a thread that asks waits here for what is needed to reap it
            if self._ended:
                return
            self._ended = True
            # Its number is not reused before its nursery has reaped it. If the nursery has ended, the process
            # has too, and the number may be another process's by now.
            if self.parent.poll() is None:
                with suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGKILL)
                self._nursery.dead.append(self)
            with suppress(OSError):
                self._stream.shutdown(socket.SHUT_RDWR)


class Nursery:
    """Forks processes from one that has imported modules.

    Args:
        modules: The modules that it imports.
        prepare: A function that it calls then, so that all its processes have what the call keeps; picklable.
    """

    def __init__(self, modules: Sequence[str], prepare: Callable[[], object] | None = None) -> None:
        self._modules, self._prepare = tuple(modules), prepare
        self._forget()
        if OFFERED:
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """Leaves the processes to the parent, in a fork."""
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._control: Connection[Any, Any] | None = None
        #: Those that were ended and are not reaped yet.
        self.dead: deque[Forked] = deque()

    def fork(self) -> Forked:
        """Returns a new process.

        Raises:
            OSError: the nursery cannot be started, or the system starts no further process.
        """
        with self._lock:
            for tried in range(2):
                try:
                    self._reap_dead()
                    return self._fork()
                except OSError:
                    if tried:
                        raise
        raise AssertionError("the second try returns or raises")

    def reap(self) -> None:
        """Asks for the exit status of each process that has ended, if the one that forked it still knows."""
        with self._lock, suppress(OSError):
            self._reap_dead()

    def start(self) -> None:
        """Begins to import the modules; it does not wait for that."""
        with self._lock:
            self._require_control()

    def close(self) -> None:
        """Ends the nursery and all its processes. The next fork starts a new one."""
        with self._lock:
            self._stop()

    def _fork(self) -> Forked:
        control = self._require_control()
        here, there = socket.socketpair()
        with there:
            try:
                pid = self._exchange(control, None, there.fileno())
            except BaseException:
                here.close()
                raise
        parent = self._process
        if pid <= 0 or parent is None:  # the other processes go on
            here.close()
            raise OSError("the system starts no further process")
        return Forked(self, parent, pid, here)

    def _reap_dead(self) -> None:
        while self.dead:
            process = self.dead.popleft()
            # If who forked it has ended, nobody can say its status.
            if process.parent is self._process and self._control is not None:
                process.status = self._exchange(self._control, process.pid)

    def _exchange(self, control: Connection[Any, Any], pid: int | None, file: int | None = None) -> int:
        """Returns what ``run_nursery`` answers; after an error the nursery starts anew."""
        try:
            control.send(pid)
            if file is not None:
                with _borrow_socket(control) as stream:
                    socket.send_fds(stream, [b"f"], [file])
            answer: int = control.recv()
            return answer
        except EOFError as error:
            self._stop()
            raise ConnectionError("the nursery has ended") from error
        except BaseException:  # such as Ctrl-C: the next answer would be this one's
            self._stop()
            raise

    def _require_control(self) -> Connection[Any, Any]:
        if self._control is not None:
            return self._control
        here, there = socket.socketpair()
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        with there:
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from {__name__} import run_nursery; run_nursery()"],
                stdin=there.fileno(),
                env={**os.environ, "PYTHONPATH": paths},
            )
        control = self._control = Connection(here.detach())
        try:
            control.send((self._modules, self._prepare))
        except BaseException:
            self._stop()
            raise
        return control

    def _stop(self) -> None:
        process, control = self._process, self._control
        self._process = self._control = None
        self.dead.clear()
        if control is not None:
            control.close()
        if process is not None:
            process.kill()
            process.wait()


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


class Pool:
    """Processes that wait for their next request; a new one is forked if none waits.

    A fork of this process leaves them to its parent: one that both asked would answer the one what the other
    has asked.

    Args:
        nursery: Forks the processes.
        most: The most that wait. The one unused for longest is ended.

    Attributes:
        idle: Those that wait, by their key, the one unused for longest first.
    """

    def __init__(self, nursery: Nursery, most: int) -> None:
        self.nursery, self._most = nursery, most
        self.idle: dict[int, Forked] = {}
        _pools.add(self)

    def ask(
        self, request: Request, seconds: float, caller: Caller, key: int | None = None, times: int = 1
    ) -> tuple[Any, str, float]:
        """Returns what ``Forked.ask`` does. If the process ends, a new one is asked, once.

        Args:
            request: The request.
            seconds: The processor time after which the kernel ends the process.
            caller: Who waits for the answer; the process is ended if the caller leaves.
            key: Names a process that answers nothing else; None for any process.
            times: How many times as much time a new process has. The time that it used is divided by this.

        Raises:
            CallerLeftError: the caller has left.
            EndedError: the second process has ended too, or one has used its time.
            OSError: no process can be started.
        """
        for is_last in (False, True):
            idle = None if is_last else self._take(key)
            process, factor = (self.nursery.fork(), times) if idle is None else (idle, 1)
            try:
                with caller.ending(process.end):
                    answer, failure, spent = process.ask(request, seconds * factor)
            except EndedError as error:
                caller.require_presence()
                if is_last or error.is_late:
                    raise
                continue
            except BaseException:
                process.end()
                raise
            if failure:  # nobody knows what it has left in the process
                process.end()
            else:
                self.idle[process.pid if key is None else key] = process
                # Copied in one move: other threads change it meanwhile.
                for oldest in list(self.idle)[: -self._most]:
                    self.end(oldest)
            return answer, failure, spent / factor
        raise AssertionError("the second process answers or raises")

    def _take(self, key: int | None) -> Forked | None:
        """Returns an idle process, which is idle no more; None if there is none."""
        with suppress(KeyError):
            return self.idle.popitem()[1] if key is None else self.idle.pop(key)
        return None

    def end(self, key: int) -> None:
        """Ends the idle process of a key, if there is one."""
        process = self.idle.pop(key, None)
        if process is not None:
            process.end()

    def close(self) -> None:
        """Ends the nursery and all its processes; they start again when needed."""
        self.idle.clear()
        self.nursery.close()


def _forget_idle() -> None:
    """Leaves all idle processes to the parent, in a fork."""
    for pool in list(_pools):
        pool.idle.clear()


if OFFERED:
    os.register_at_fork(after_in_child=_forget_idle)


@contextmanager
def _borrow_socket(connection: Connection[Any, Any]) -> Iterator[socket.socket]:
    """Yields a socket of a connection's file, which stays the connection's: it needs no further one."""
    stream = socket.socket(fileno=connection.fileno())
    try:
        yield stream
    finally:
        stream.detach()


def run_nursery() -> None:
    """Forks processes as a connection at standard input asks for them, until it is closed.

    First come the modules and the call to prepare. Then None with a socket asks for a process that answers
    there, and a number for the exit status of that process.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the group: who asks decides what it means
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    control: Connection[Any, Any] = Connection(os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # what a game prints is no answer
    try:
        modules, prepare = control.recv()
    except EOFError:
        os._exit(0)
    for module in modules:
        import_module(module)
    if prepare is not None:
        prepare()
    children: set[int] = set()
    while True:
        file = None
        try:
            if (pid := control.recv()) is None:
                with _borrow_socket(control) as stream:
                    file = socket.recv_fds(stream, 1, 1)[1][0]
        except (EOFError, OSError, IndexError):
            for child in children:
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            os._exit(0)
        if file is not None:
            control.send(_fork_child(control, file, children))
        else:
            control.send(_wait_for(pid))
            children.discard(pid)


def _fork_child(control: Connection[Any, Any], file: int, children: set[int]) -> int:
    """Returns the id of a new process that answers on a socket; 0 if there can be none."""
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError:
        os.close(file)
        return 0
    if not pid:
        control.close()
        _end_with_parent(parent)
        _answer_requests(file)
    os.close(file)
    children.add(pid)
    return pid


def _answer_requests(file: int) -> None:
    """Answers requests until there are no more. It does not return."""
    stream = socket.socket(fileno=file).makefile("rwb")
    while True:
        try:
            seconds, request = pickle.load(stream)
        except EOFError:
            os._exit(0)
        began = time.process_time()
        if isfinite(seconds):
            signal.setitimer(signal.ITIMER_PROF, max(seconds, 1e-3))  # whose signal ends the process
        try:
            outcome: tuple[Any, str] = (request.answer(), "")
        except Exception as error:
            outcome = (None, f"{type(error).__name__}: {error}")
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        pickle.dump((*outcome, time.process_time() - began), stream)
        stream.flush()


def _end_with_parent(parent: int) -> None:
    """Has Linux end this process when the nursery ends, if it is killed; it may have been killed already."""
    if sys.platform == "linux":
        import ctypes

        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        os._exit(1)


def _wait_for(pid: int) -> int:
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return 0


def count_cores() -> int:
    """Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_thread = local()


def share_cores() -> None:
    """Says that this thread is one of several that compute at once: the initializer of a pool of threads."""
    _thread.shares = True


def shares_cores() -> bool:
    """Returns whether this thread is one of several that compute at once.

    What computes in Python then does better in a process of its own, because the threads share Python's lock.
    """
    return getattr(_thread, "shares", False)
