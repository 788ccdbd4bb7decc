"""Processes in which searches written in Python think: within one process, its lock lets one think at a time.

A process keeps nothing between two moves. A request has all that a move follows from (the game, the state,
the budget and where the random generators stand), so any process may answer it, and a request whose process
has died is made again.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import subprocess
import sys
from importlib import import_module
from threading import Lock
from typing import Any, NamedTuple, Protocol

import pyspiel

from game_gym.spec import State
from task_gym.cores import shares_cores
from task_gym.errors import OpponentError
from task_gym.opponents import Seating


class PythonSearch(Protocol):
    """An opponent that searches in Python.

    Its class takes a ``Seating``. With ``argument`` it must need neither ``spec`` nor anything but the game.
    """

    argument: str
    """The budget as text, which makes an equal search in another process."""

    def choose(self, state: State, seat: int) -> int:
        """Returns the move, and moves the generators on."""

    def generators(self) -> Any:
        """Returns where its random generators stand, which can be pickled."""

    def set_generators(self, states: Any) -> None:
        """Puts its random generators there."""


class _Request(NamedTuple):
    module: str
    name: str
    argument: str
    state: str
    seat: int
    generators: Any


def choose(search: PythonSearch, state: State, seat: int) -> int:
    """Returns the move of a search: in a process of its own if this thread shares the cores with others.

    A game that is written in Python is searched here, because another process does not know it.
    """
    if not shares_cores() or not type(state).__module__.startswith(pyspiel.__name__):
        return search.choose(state, seat)
    own = type(search)
    text = pyspiel.serialize_game_and_state(state.get_game(), state)
    request = _Request(own.__module__, own.__qualname__, search.argument, text, seat, search.generators())
    action, states = _processes.ask(request)
    search.set_generators(states)
    return int(action)


class _Processes:
    """As many processes as threads ask at once; those that are idle wait for the next request."""

    def __init__(self) -> None:
        self._idle: list[subprocess.Popen[bytes]] = []
        self._lock = Lock()

    def ask(self, request: _Request) -> tuple[int, Any]:
        """Returns the move, and where the generators stand after it.

        Raises:
            OpponentError: two processes died of the request, or the search failed.
        """
        for _ in range(2):
            process = self._take()
            assert process.stdin is not None and process.stdout is not None
            try:
                pickle.dump(request, process.stdin)
                process.stdin.flush()
                answer, failure = pickle.load(process.stdout)
            except (OSError, EOFError, pickle.UnpicklingError):
                process.kill()
                process.wait()
                continue
            with self._lock:
                self._idle.append(process)
            if failure:
                raise OpponentError(f"opponent: the search {request.name} failed in its process: {failure}")
            return answer  # type: ignore[no-any-return]
        raise OpponentError(
            f"opponent: the search {request.name} ended its process twice (status {process.returncode})"
        )

    def _take(self) -> subprocess.Popen[bytes]:
        """Returns an idle process, or a new one."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        code = f"from {__name__} import serve; serve()"
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
        return subprocess.Popen(
            [sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": paths},
        )

    def close(self) -> None:
        """Ends the processes that are idle; the others end when this one does."""
        with self._lock:
            idle, self._idle = self._idle, []
        for process in idle:
            process.kill()
            process.wait()

    def forget(self) -> None:
        """Leaves the processes to the parent, in a fork."""
        self._idle, self._lock = [], Lock()


_processes = _Processes()
atexit.register(_processes.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_processes.forget)


def serve() -> None:
    """Answers requests from standard input until it ends, as when the process that asks is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the group: who asks decides what it means
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a game prints is no answer
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            found: Any = (_answer(request), "")
        except Exception as error:
            found = (None, f"{type(error).__name__}: {error}")
        pickle.dump(found, answers)
        answers.flush()


def _answer(request: _Request) -> tuple[int, Any]:
    game, state = pyspiel.deserialize_game_and_state(request.state)
    make = getattr(import_module(request.module), request.name)
    search: PythonSearch = make(Seating(game, None, request.seat, request.argument))
    search.set_generators(request.generators)
    return search.choose(state, request.seat), search.generators()
