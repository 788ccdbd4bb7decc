"""One sampler for several processes."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge
from multiprocessing.util import register_after_fork
from typing import Any

from task_gym.errors import SamplerError, TaskGymError
from task_gym.samplers.base import Outcome, Start, State, TaskSampler

_LOOK = 0.5
"""Seconds between two looks at whether a sampler is still shared."""

_PAUSE = 0.1
"""Seconds before the next caller is accepted, if one could not be."""


class SharedSampler:
    """A sampler in another process, or in this one: it hands every call on, and can be pickled.

    Args:
        address: The address of the listener.
        key: The key that its callers know.

    Raises:
        SamplerError: from every method, if the sampler is no longer shared.
    """

    def __init__(self, address: Any, key: bytes) -> None:
        self._address, self._key = address, key
        self._local = threading.local()  # a connection serves one thread of one process

    def draw(self, address: Sequence[int] | None = None) -> Start:
        """Returns the start at an address; None for the next of the sampler's own count."""
        start: Start = self._call("draw", address)
        return start

    def record(self, outcomes: Iterable[Outcome]) -> list[State]:
        """Applies outcomes in order; returns the events that they caused."""
        events: list[State] = self._call("record", list(outcomes))
        return events

    def stats(self) -> State:
        """Returns numbers and names to show."""
        return dict(self._call("stats"))

    def state_dict(self) -> State:
        """Returns all that changes, as plain data."""
        return dict(self._call("state_dict"))

    def load_state_dict(self, state: State) -> None:
        """Continues exactly from a state."""
        self._call("load_state_dict", state)

    def _call(self, method: str, *arguments: Any) -> Any:
        try:
            connection = self._connect()
            connection.send((method, arguments))
            error, answer = connection.recv()
        except BaseException as lost:
            # After a Ctrl-C, say, an answer may still come, and it is not that of the next call.
            self._local = threading.local()
            if not isinstance(lost, OSError | EOFError | AuthenticationError):
                raise
            raise SamplerError(
                f"sampler: {method} was called, but the sampler is no longer shared: the process that shared "
                "it ended or closed it; share one again, with its last state_dict, and make the environments "
                "anew"
            ) from lost
        if error:
            raise answer
        return answer

    def _connect(self) -> Connection[Any, Any]:
        # After a fork the connection is the parent's.
        if getattr(self._local, "process", None) != os.getpid():
            self._local.connection = Client(self._address, authkey=self._key)
            self._local.process = os.getpid()
        connection: Connection[Any, Any] = self._local.connection
        return connection

    def __getstate__(self) -> tuple[Any, bytes]:
        return self._address, self._key

    def __setstate__(self, state: tuple[Any, bytes]) -> None:
        self.__init__(*state)  # type: ignore[misc]


@contextlib.contextmanager
def share(sampler: TaskSampler) -> Iterator[SharedSampler]:
    """Shares a sampler with other processes of this machine, as long as the block runs.

    The sampler stays in this process, where a thread answers the calls one after another::

        with share(sampler) as shared:
            envs = SubprocVecEnv([lambda: Curriculum(make(), shared)] * 8)

    Calls of several workers are answered in the order of their arrival. A run is repeatable with one worker,
    or with a trainer that draws by address.

    Args:
        sampler: Any sampler.
    """
    server = _Server(sampler)
    try:
        yield SharedSampler(server.address, server.key)
    finally:
        server.close()


class _Server:
    """Answers the calls of shared samplers in a thread for each."""

    def __init__(self, sampler: TaskSampler) -> None:
        self._sampler = sampler
        self.key = os.urandom(32)
        self._closed = False
        self._lock = threading.Lock()
        self._connections: list[Connection[Any, Any]] = []
        self._listener = Listener()
        self.address = self._listener.address
        # A forked worker that keeps these open would hide the end of this process from the others.
        register_after_fork(self, _Server._close_copies)
        self._thread = threading.Thread(target=self._accept, daemon=True, name="shared sampler")
        self._thread.start()

    def close(self) -> None:
        """Ends all connections; callers then get an error."""
        self._closed = True
        # accept() waits for one more caller. This one waits for nothing itself: the thread may be gone.
        with contextlib.suppress(OSError):
            Client(self.address).close()
        self._thread.join(_LOOK)
        self._listener.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection = self._listener.accept()
            except OSError:
                time.sleep(_PAUSE)  # with no file descriptor left, the next one fails as soon
                continue
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: Connection[Any, Any]) -> None:
        with contextlib.suppress(OSError, EOFError, AuthenticationError), connection:
            # Here and not at accept(), so that a caller that says nothing keeps nobody else waiting.
            deliver_challenge(connection, self.key)
            answer_challenge(connection, self.key)
            while not self._closed:
                if connection.poll(_LOOK) and not self._closed:
                    connection.send(self._answer(*connection.recv()))
        self._connections.remove(connection)

    def _answer(self, method: str, arguments: Sequence[Any]) -> tuple[bool, Any]:
        """Returns whether the call raised an error, and its answer or the error."""
        try:
            with self._lock:
                return False, getattr(self._sampler, method)(*arguments)
        except TaskGymError as error:
            return True, error
        except Exception as error:
            return True, SamplerError(f"sampler: {method} failed with {type(error).__name__}: {error}")

    def _close_copies(self) -> None:
        self._closed = True
        with contextlib.suppress(OSError):
            # Not listener.close(), which would also remove the parent's address.
            os.close(self._listener._listener._socket.detach())  # type: ignore[attr-defined]
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.close()
