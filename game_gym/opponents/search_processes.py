"""Processes in which searches think, apart from the one that plays.

A search written in Python thinks there because within one process its lock lets one think at a time. Its
process keeps nothing between two moves.

OpenSpiel's own bots think there if they may end their process. Their generators cannot be read, so the
process keeps the bot, and a request has every state that the bot was asked about, for a new process.

So a request has all that a move follows from, any process may answer it, and a request whose process has
died is made again.
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

from game_gym.opponents.endable import DistantBot, NamedRequest, ask_endably, ends_with_caller, is_native
from game_gym.spec import State
from task_gym.cores import count_cores, shares_cores
from task_gym.errors import OpponentError, OpponentFaultError
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


class _Choice(NamedTuple):
    """A request for the move of a search written in Python, and where its generators stand after it."""

    module: str
    name: str
    argument: str
    state: str
    seat: int
    generators: Any

    def answer(self) -> tuple[int, Any]:
        game, state = pyspiel.deserialize_game_and_state(self.state)
        make = getattr(import_module(self.module), self.name)
        search: PythonSearch = make(Seating(game, None, self.seat, self.argument))
        search.set_generators(self.generators)
        return search.choose(state, self.seat), search.generators()


class ProcessBot(DistantBot):
    """A bot of OpenSpiel in one of a few processes, which may end without this one."""

    def step(self, state: State) -> int:
        """Returns the bot's move, as its own ``step`` does.

        Raises:
            OpponentFaultError: two processes died of the request.
        """
        return int(_kept[self._number % len(_kept)].ask(self._extend(state)))


def choose(search: PythonSearch, state: State, seat: int) -> int:
    """Returns the move of a search: in a process of its own if this thread shares the cores with others.

    A game that is written in Python is searched here, because another process does not know it.
    """
    ends = ends_with_caller(state)
    if not ends and (not shares_cores() or not is_native(state.get_game())):
        return search.choose(state, seat)
    own = type(search)
    text = pyspiel.serialize_game_and_state(state.get_game(), state)
    request = _Choice(own.__module__, own.__qualname__, search.argument, text, seat, search.generators())
    action, states = ask_endably(request) if ends else _processes.ask(request)
    search.set_generators(states)
    return int(action)


class _Processes:
    """As many processes as threads ask at once; those that are idle wait for the next request."""

    def __init__(self) -> None:
        self._idle: list[subprocess.Popen[bytes]] = []
        self._lock = Lock()

    def ask(self, request: NamedRequest) -> Any:
        """Returns the request's answer.

        Raises:
            OpponentError: the search failed.
            OpponentFaultError: two processes died of the request.
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
            return answer
        raise OpponentFaultError(
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


class _OneProcess(_Processes):
    """A process that answers one request after the other, and so keeps the bots that it was asked about."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = Lock()

    def ask(self, request: NamedRequest) -> Any:
        with self._turn:
            return super().ask(request)

    def forget(self) -> None:
        super().forget()
        self._turn = Lock()


_processes = _Processes()
_kept = [_OneProcess() for _ in range(count_cores())]
for _each in (_processes, *_kept):
    atexit.register(_each.close)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_each.forget)


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
            found: Any = (request.answer(), "")
        except Exception as error:
            found = (None, f"{type(error).__name__}: {error}")
        pickle.dump(found, answers)
        answers.flush()
