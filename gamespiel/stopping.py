"""Signals that stop a run: Ctrl-C, SIGTERM (``docker stop``, Slurm, ``kill``), SIGHUP (a lost connection)."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], None]

OTHERS = tuple(name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""The signals beside Ctrl-C's. Windows has no SIGHUP."""


class Stopped(KeyboardInterrupt):
    """A signal that stopped a run.

    Attributes:
        number: The signal's number. A command that it ended returns 128 more.
    """

    def __init__(self, number: int) -> None:
        super().__init__(name_of(number))
        self.number = number


def name_of(number: int) -> str:
    """Returns what people call a signal."""
    return "Ctrl-C" if number == signal.SIGINT else signal.Signals(number).name


class Stop:
    """Whether a signal has asked a run to stop, and until when the step under way may take.

    Args:
        grace: Seconds that a step may take after SIGTERM: whoever sends it will kill the process soon.

    Attributes:
        number: The first signal's number; None if there was none.
        told: Whether the display says so.
    """

    def __init__(self, grace: float = math.inf) -> None:
        self.grace = grace
        self.number: int | None = None
        self.told = False
        self._deadline = math.inf

    @property
    def asked(self) -> bool:
        """Returns whether there was a signal."""
        return self.number is not None

    @property
    def late(self) -> bool:
        """Returns whether the time of grace is over."""
        return time.monotonic() > self._deadline

    def ask(self, number: int) -> None:
        """Asks the run to stop."""
        if self.number is None:
            self.number = number
        if number == signal.SIGTERM:
            self._deadline = min(self._deadline, time.monotonic() + self.grace)


@contextmanager
def interrupting() -> Iterator[None]:
    """Makes the first SIGTERM or SIGHUP within the context raise Stopped, as Ctrl-C interrupts."""
    raised = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal raised
        if not raised:  # a second one must not interrupt what the first one's end cleans up
            raised = True
            raise Stopped(number)

    with _set_handlers(dict.fromkeys(OTHERS, interrupt)):
        yield


@contextmanager
def asking(stop: Stop) -> Iterator[None]:
    """Makes signals within the context ask ``stop``; the second Ctrl-C interrupts as usual.

    A shell whose connection drops sends SIGHUP, and so does the kernel: those after the first change nothing.
    """
    usual = signal.getsignal(signal.SIGINT)

    def ask(number: int, frame: FrameType | None) -> None:
        stop.ask(number)
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, usual)

    with _set_handlers(dict.fromkeys(("SIGINT", *OTHERS), ask)):
        yield


@contextmanager
def _set_handlers(handlers: Mapping[str, Handler]) -> Iterator[None]:
    """Sets handlers by name within the context; signals that are ignored, as by ``nohup``, stay so."""
    before: dict[int, signal.Handlers | Handler | int | None] = {}
    for name, handler in handlers.items():
        number = getattr(signal, name)
        if (current := signal.getsignal(number)) in (signal.SIG_IGN, None):
            continue
        try:
            signal.signal(number, handler)
        except ValueError:  # not the main thread: only that thread may handle signals
            break
        before[number] = current
    try:
        yield
    finally:
        for number, old_handler in before.items():
            signal.signal(number, old_handler)
