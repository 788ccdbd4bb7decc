"""The file beside a board that has every deal as soon as it is played: a kill loses the deals under way."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gamespiel.leaderboard.board import Board, BoardError, Row, Unit, check_row
from gamespiel.measure.journal import read_lines
from task_gym.files import append_line

try:
    import fcntl
except ImportError:  # Windows: nothing keeps two commands apart there
    fcntl = None  # type: ignore[assignment]


class Journal:
    """The deals that were played since the board's file was written.

    Args:
        file: The journal's file.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    def begin(self, board: Board) -> None:
        """Reads what an earlier command left, and writes what the board is."""
        head = {"deals": board.deals.name, "track": board.track}
        if self.file.exists():
            self._read(board, head)
        else:
            append_line(self.file, json.dumps(head))
            for entry in board.entries.values():
                append_line(self.file, json.dumps({"entry": entry}))

    def _read(self, board: Board, head: dict[str, Any]) -> None:
        def take(row: dict[str, Any]) -> None:
            if "unit" in row:
                name, task, deal = row["unit"]
                board.played[name, task, deal] = [check_row(episode) for episode in row["rows"]]
            elif "entry" in row:
                board.entries.setdefault(row["entry"]["name"], row["entry"])
            elif row != head:
                raise ValueError(f"it is of the board {json.dumps(row):.120}, not {json.dumps(head)}")

        advice = "without this file, what was played since the board was written is played again"
        read_lines(self.file, take, BoardError, advice)

    def enter(self, entry: dict[str, Any]) -> None:
        """Writes that an agent plays."""
        append_line(self.file, json.dumps({"entry": entry}))

    def keep(self, unit: Unit, rows: Sequence[Row]) -> None:
        """Writes the records of a deal."""
        append_line(self.file, json.dumps({"unit": list(unit), "rows": list(rows)}, allow_nan=False))


@contextmanager
def lock_board(path: Path) -> Iterator[None]:
    """Keeps a board from other commands within the context.

    Raises:
        BoardError: another command plays it.
    """
    lock = path.with_name(f".{path.name}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise BoardError(f"another command plays the board {str(path)!r} now") from error
        yield
    finally:
        os.close(handle)
