"""The file that has every episode as soon as it is over: nothing is lost at Ctrl-C or by a kill."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from rich.console import Console

from gamespiel.errors import InvalidValueError
from gamespiel.report.text import print_plain
from task_gym.errors import BackendError, TaskGymError
from task_gym.files import NO_JSON, append_line, explain_json, read_file, write_atomically

Row = dict[str, Any]
"""An episode as plain data."""

K = TypeVar("K")

OVER = "over"
"""The key of a line that says that all episodes were played."""


class Journal(Generic[K]):
    """The episodes that were played, by key; of a key that was played again, the last one.

    Args:
        file: The file; its lines of an earlier, stopped command are read. A last line that a kill cut, in
            mid-character, is removed.
        find_key: An episode's row to its key; a ValueError, LookupError or TypeError says that it is none.
        error: The error of a line that cannot be read.
        advice: What its message ends with.

    Attributes:
        file: As given.
        played: Key to row.
        over: Whether the command that wrote it came to its end.

    Raises:
        error: a line of the file is no such row.
    """

    def __init__(
        self,
        file: Path,
        find_key: Callable[[Row], K],
        error: type[TaskGymError] = InvalidValueError,
        advice: str = "without it, --resume plays the rest",
    ) -> None:
        self.file, self._find_key = file, find_key
        self.played: dict[K, Row] = {}
        self.over = False
        self._lock = threading.Lock()
        # It is read however long it is: a large evaluation goes on.
        content = read_file(file, most=sys.maxsize) if file.exists() else b""
        whole, _, cut = content.rpartition(b"\n")
        for number, line in enumerate(whole.split(b"\n") if whole else [], 1):
            try:
                self._take(json.loads(line))
            except (*NO_JSON, LookupError, TypeError) as failure:
                reason = explain_json(failure)
                raise error(f"{str(file)!r}, line {number}: {reason}; {advice}") from failure
        if cut:
            write_atomically(file, whole + b"\n" if whole else b"")

    def _take(self, row: Row) -> None:
        self.over = OVER in row  # and not any more if rows follow
        if not self.over:
            self.played[self._find_key(row)] = row

    def keep(self, row: Row) -> None:
        """Writes an episode; threads may call it."""
        # In JSON, a lone surrogate is written as Python's backslash replacement writes it.
        line = json.dumps(row, ensure_ascii=False)
        key = self._find_key(row)  # before it is written: what cannot be read again must not be
        with self._lock:
            append_line(self.file, line, errors="backslashreplace")
            self.played[key] = row

    def mark_over(self) -> None:
        """Says that nothing is left to play: the same command begins anew."""
        append_line(self.file, json.dumps({OVER: True}))


@contextmanager
def open_journal(
    question: Mapping[str, Any],
    first: Path,
    find_key: Callable[[Row], K],
    is_fault: Callable[[Row], bool],
    resume: bool,
    console: Console,
) -> Iterator[Journal[K]]:
    """Yields the journal of a command. It stays if the command is stopped, which then says so.

    The file's name has the question in it, so it is found again, whatever number the results' file has.

    Args:
        question: The results without their values.
        first: The first choice of the results' file.
        find_key: An episode's row to its key.
        is_fault: Whether a row is of a fault, which ``resume`` plays again.
        resume: Whether what was played before counts.
        console: The console to print on.

    Raises:
        InvalidValueError: there are episodes of it and no ``resume``, or none and ``resume``.
    """
    text = json.dumps(question, sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    journal = Journal(first.with_name(f"{first.stem}-{digest}.jsonl"), find_key)
    if not resume:
        if journal.played and not journal.over:
            raise InvalidValueError(
                f"{journal.file} has {len(journal.played)} episodes of this command: --resume plays the "
                "rest; remove the file to begin anew"
            )
        journal.file.unlink(missing_ok=True)
        journal.played.clear()
    elif not journal.played:
        raise InvalidValueError(
            f"--resume: there is no {journal.file}, and so nothing was played before; the command must "
            "be the same otherwise"
        )
    else:
        faults = [key for key, row in journal.played.items() if is_fault(row)]
        for key in faults:
            del journal.played[key]
        again = f"; {len(faults)} that ended as faults are played again" if faults else ""
        print_plain(console, f"going on with {len(journal.played):,} episodes of {journal.file}{again}")
    try:
        yield journal
        if journal.played:
            journal.mark_over()
    except (BackendError, KeyboardInterrupt) as error:
        if not journal.played:
            raise
        count = len(journal.played)
        advice = f"{count:,} episodes were played and are kept in {journal.file}; --resume plays the rest"
        if isinstance(error, BackendError):
            raise type(error)(f"{error}; {advice}") from error
        print_plain(console, advice)
        raise
