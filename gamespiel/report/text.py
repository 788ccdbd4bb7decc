"""Text for a terminal: durations, long and strange texts, JSON, and output that may lose its reader."""

from __future__ import annotations

import json
import math
import os
import sys
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from task_gym.visible import INVISIBLE, show_controls

if TYPE_CHECKING:  # the command line starts without rich
    from rich.console import Console


def format_duration(seconds: float | None) -> str:
    """Returns ``4:05``, ``1:02:03``, or ``-`` if unknown."""
    if seconds is None or not math.isfinite(seconds):
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def keep_last_lines(text: str, lines: int) -> str:
    """Returns at most ``lines`` last lines of ``text``, the first of them ``…`` if it has more lines."""
    rows = show_controls(text).strip("\n").split("\n")
    return "\n".join(rows if len(rows) <= lines else ["…", *rows[-(lines - 1) :]])


def print_plain(console: Console, text: str) -> None:
    """Prints a text as it is: brackets are no markup, and only the terminal wraps its lines."""
    console.print(text, soft_wrap=True, markup=False)


def print_json(data: Any) -> None:
    """Prints plain data as JSON, with escapes if the standard output cannot show every character."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    text = json.dumps(data, indent=2, ensure_ascii=not encoding.lower().startswith("utf"))
    print("".join(map(_escape, text)))


def _escape(character: str) -> str:
    """Returns a character of JSON as an escape if a terminal would obey it; JSON itself escapes only some."""
    obeyed = character != "\n" and unicodedata.category(character) in INVISIBLE
    return json.dumps(character)[1:-1] if obeyed else character


class Lasting:
    """A stream whose writes go nowhere from the moment that nobody reads them any more.

    Readers go: a pipe's ``head`` ends, a terminal's connection drops.

    Args:
        stream: The stream. Its other attributes are this one's too.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Writes a text; returns its length."""
        self._outlive(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        """Flushes the stream."""
        self._outlive(self._stream.flush)

    def _outlive(self, call: Callable[..., object], *arguments: str) -> None:
        try:
            call(*arguments)
        except OSError:
            # The null device takes the rest of the buffer, or the interpreter would fail as it ends.
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
