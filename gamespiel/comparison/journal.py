"""The file that has every episode of a comparison as soon as it is over: nothing is lost at Ctrl-C."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from gamespiel.comparison.hands import Hand, Record
from gamespiel.config import InvalidValueError
from task_gym.errors import BackendError
from task_gym.files import append_line, write_atomically

OVER = "over"
"""The key of a line that says that all episodes were played."""


class Journal:
    """The episodes that were played, by contender and place.

    Args:
        file: The file; its lines of an earlier, stopped comparison are read.

    Attributes:
        file: As given.
        played: (contender's name, place) to the record.
        over: Whether the comparison that wrote it came to its end.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.played: dict[tuple[str, int], Record] = {}
        self.over = False
        for row in _read(file) if file.exists() else []:
            if OVER in row:
                self.over = True
            else:
                self.played[str(row["contender"]), int(row["place"])] = row
        self._lock = threading.Lock()

    def keep(self, contender: str, hand: Hand, record: Record) -> None:
        """Writes an episode; threads may call it."""
        deal = hand.deal
        row = {
            "contender": contender,
            "place": hand.place,
            "game": deal.game,
            "deal": deal.number,
            "task_id": deal.address.task_id,
            "seed": deal.address.seed,
            "seat": hand.seat,
            **record,
        }
        # In JSON, a lone surrogate is written as Python's backslash replacement writes it.
        line = json.dumps(row, ensure_ascii=False)
        with self._lock:
            append_line(self.file, line, errors="backslashreplace")
            self.played[contender, hand.place] = row

    def mark_over(self) -> None:
        """Says that nothing is left to play: the same command begins anew."""
        append_line(self.file, json.dumps({OVER: True}))

    def rows(self) -> list[Record]:
        """Returns all episodes, by place and then in the order in which they were played."""
        return [row for _, row in sorted(self.played.items(), key=lambda item: item[0][1])]

    def forget_faults(self) -> int:
        """Leaves out the faults of an earlier comparison, which are played again; returns their number."""
        faults = [key for key, row in self.played.items() if row["score"] is None]
        for key in faults:
            del self.played[key]
        return len(faults)


@contextmanager
def open_journal(
    question: Mapping[str, Any], first: Path, resume: bool, console: Console
) -> Iterator[Journal]:
    """Yields the journal of a comparison. It stays if the comparison is stopped, and says so.

    The file's name has the question in it, so it is found again, whatever number the results' file has.

    Args:
        question: The results without their values.
        first: The first choice of the results' file.
        resume: Whether what was played before counts. Faults do not.
        console: The console to print on.

    Raises:
        InvalidValueError: there are such episodes, and ``resume`` is not set; or there are none, and it is.
    """
    text = json.dumps(question, sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    journal = Journal(first.with_name(f"{first.stem}-{digest}.jsonl"))
    if resume:
        if not journal.played:
            raise InvalidValueError(
                f"--resume: there is no {journal.file}, and so nothing was played before; the command must "
                "be the same otherwise"
            )
        faults = journal.forget_faults()
        again = f"; {faults} that ended as faults are played again" if faults else ""
        said = f"going on with {len(journal.played):,} episodes of {journal.file}{again}"
        console.print(said, soft_wrap=True, markup=False)
    elif journal.played and not journal.over:
        raise InvalidValueError(
            f"{journal.file} has {len(journal.played)} episodes of this comparison: --resume plays the rest; "
            "remove the file to begin anew"
        )
    else:
        journal.file.unlink(missing_ok=True)
        journal.played.clear()
    try:
        yield journal
        if journal.played:
            journal.mark_over()
    except (BackendError, KeyboardInterrupt) as error:
        if not journal.played:
            raise
        said = f"{len(journal.played):,} episodes were played and are kept in {journal.file}; --resume plays "
        said += "the rest"
        if isinstance(error, BackendError):
            raise type(error)(f"{error}; {said}") from error
        console.print(said, soft_wrap=True, markup=False)
        raise


def _read(file: Path) -> list[Record]:
    """Returns the whole lines of a file; a kill may have cut the last one, in mid-character."""
    whole, _, cut = file.read_bytes().rpartition(b"\n")
    if cut:
        write_atomically(file, whole + b"\n" if whole else b"")
    return [json.loads(line) for line in whole.splitlines()]
