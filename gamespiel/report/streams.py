"""Output that may lose its reader: a pipe to ``head``, a terminal whose connection drops."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Lasting:
    """A stream whose writes go nowhere from the moment that nobody reads them any more.

    Args:
        stream: The stream. Its other attributes are this one's too.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Writes a text; returns its length."""
        try:
            self._stream.write(text)
        except OSError:
            self._discard_output()
        return len(text)

    def flush(self) -> None:
        """Flushes the stream."""
        try:
            self._stream.flush()
        except OSError:
            self._discard_output()

    def _discard_output(self) -> None:
        """Sends what is left in the buffer to the null device, or the interpreter would fail as it ends."""
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, self._stream.fileno())
        os.close(null)


@contextmanager
def lasting_output() -> Iterator[None]:
    """Makes the standard streams within the context outlive their readers."""
    streams = {name: getattr(sys, name) for name in ("stdout", "stderr")}
    for name, stream in streams.items():
        if stream is not None:
            setattr(sys, name, Lasting(stream))
    try:
        yield
    finally:
        for name, stream in streams.items():
            if stream is not None:
                getattr(sys, name).flush()
            setattr(sys, name, stream)
