"""The requests to workers, and the groups of environments that a worker keeps."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, Protocol

from task_gym.errors import TaskGymError
from task_gym.workers.group import Call, EnvGroup, Frame, MakeEnv


class WorkersError(TaskGymError, RuntimeError):
    """Workers that cannot be had, that one turn ends again and again, or that cannot say what they found."""


class LostError(Exception):
    """A worker that ended, or was ended, before it answered; the text says how."""


class NoRoomError(Exception):
    """No worker could be started; the text says why."""


class Worker(Protocol):
    """A process somewhere, which plays for one asker at a time."""

    def ask(self, request: Advance, seconds: float) -> bytes:
        """Returns the request's answer.

        Args:
            request: The request.
            seconds: The seconds without an answer after which the worker is ended.

        Raises:
            LostError: the worker is lost.
        """

    def end(self) -> None:
        """Ends the worker at once; a thread that asks gets LostError. It may be called more than once."""


class WorkerLauncher(Protocol):
    """A way to start workers."""

    name: str

    def start(self) -> Worker:
        """Returns a new worker.

        Raises:
            NoRoomError: none could be started in time.
        """

    def close(self) -> None:
        """Ends what is left; a thread that starts a worker gets NoRoomError, or a worker that has ended."""


_parcels: dict[int, bytes] = {}  # in the worker: groups as they came, and those that were made
_groups: dict[int, EnvGroup] = {}


class Advance(NamedTuple):
    """A request for turns of one group, and of what is to be kept and forgotten.

    Attributes:
        group: The group's number.
        calls: The turns.
        parcel: The group as ``pack`` made it, for a worker that does not have it yet.
        forgotten: Whether the group is to be closed.
    """

    group: int
    calls: Sequence[Call] = ()
    parcel: bytes | None = None
    forgotten: bool = False

    def answer(self) -> bytes:
        """Returns the turns, or errors, as ``unpack`` reads them; called in the worker."""
        if self.parcel is not None:
            _parcels[self.group] = self.parcel
        if self.forgotten:
            _parcels.pop(self.group, None)
            if (env_group := _groups.pop(self.group, None)) is not None:
                env_group.close()
        try:
            if self.calls and self.group not in _groups:
                _groups[self.group] = pickle.loads(_parcels[self.group])()
            turns = _groups[self.group].advance(self.calls) if self.calls else []
        except Exception as error:
            turns = [error] * len(self.calls)
        return pickle.dumps([_dump(one) for one in turns])


def pack(env_fns: Sequence[MakeEnv], *, waits: bool) -> bytes:
    """Returns a group for other processes; functions and classes of a script or a test go along."""
    import cloudpickle

    packed: bytes = cloudpickle.dumps(partial(EnvGroup, env_fns, waits=waits))
    return packed


def unpack(answer: bytes) -> list[Frame | Exception]:
    """Returns the turns, or errors, of an answer."""
    return [pickle.loads(one) for one in pickle.loads(answer)]


def _dump(turn: Frame | Exception) -> bytes:
    """Returns a turn or an error, pickled; an error in its place if it cannot be pickled and read again."""
    try:
        dumped = pickle.dumps(turn)
        if isinstance(turn, Exception):
            pickle.loads(dumped)
    except Exception as error:
        what = f"{type(turn).__name__}: {turn}" if isinstance(turn, Exception) else "a turn's info"
        return pickle.dumps(
            WorkersError(
                f"environments in workers: {what} cannot be pickled ({type(error).__name__}: {error})"
            )
        )
    return dumped
