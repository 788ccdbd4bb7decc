"""The metrics file: one line per step, one JSON object per line. It survives a kill and can be cut back."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stable_baselines3.common.logger import KVWriter, filter_excluded_keys

from task_gym.errors import TaskGymError
from task_gym.files import NO_JSON, append_line, read_file, to_json, write_atomically

Row = dict[str, Any]


class MetricsFileError(TaskGymError):
    """A metrics file with a line, other than a torn last one, that is not a step's row."""


class JSONLWriter(KVWriter):
    """Appends each ``Logger.dump(step)`` to a file as a line: ``step`` first, then the keys, sorted.

    - A metric recorded as ``step`` replaces the dump's own step.
    - NumPy and torch scalars become numbers, and arrays become lists. JSON has no infinity and no NaN: both
      become null, which the plot shows as a gap.
    - Each line is written at once, so a kill loses at most the line that it interrupts.
    - Keys recorded with ``exclude="json"`` are left out.

    Use: ``Logger(folder, [JSONLWriter(path)])``.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.touch()

    def write(
        self, key_values: dict[str, Any], key_excluded: dict[str, tuple[str, ...]], step: int = 0
    ) -> None:
        """Appends one row; an error, as of a full disk, leaves the file as it was."""
        metrics = filter_excluded_keys(key_values, key_excluded, "json")
        row = {"step": step, **{key: to_json(metrics[key]) for key in sorted(metrics)}}
        append_line(self.path, json.dumps(row, ensure_ascii=False, allow_nan=False))

    def close(self) -> None:
        """Does nothing: the file is open only while a row is written."""


def read_rows(path: str | os.PathLike[str]) -> list[Row]:
    """Returns the rows of a metrics file, in order. A last line torn by a kill is left out.

    Raises:
        MetricsFileError: another line is not a step's row.
    """
    return [row for _, row in _lines(Path(path))]


def truncate_after(path: str | os.PathLike[str], step: int) -> int:
    """Removes the rows after ``step``, and a torn last line; returns how many lines were removed.

    A resumed run logs the steps after its checkpoint again. The file is replaced in one move, so a kill
    leaves the old file or the new one. If there is no file, nothing was logged: 0.
    """
    path = Path(path)
    if not path.exists():
        return 0
    total = len(_read_text(path).splitlines())
    lines = [line for line, row in _lines(path) if row["step"] <= step]
    if len(lines) < total:
        write_atomically(path, "".join(lines))
    return total - len(lines)


def find_gaps(path: str | os.PathLike[str], last: int) -> list[tuple[int, int]]:
    """Returns the steps from 1 to ``last`` that a metrics file lacks, as (first, last) pairs."""
    path = Path(path)
    known = {row["step"] for row in read_rows(path)} if path.exists() else set[int]()
    gaps: list[tuple[int, int]] = []
    for step in range(1, last + 1):
        if step in known:
            continue
        if gaps and gaps[-1][1] == step - 1:
            gaps[-1] = (gaps[-1][0], step)
        else:
            gaps.append((step, step))
    return gaps


def _read_text(path: Path) -> str:
    try:
        return read_file(path).decode()
    except UnicodeDecodeError as error:
        raise MetricsFileError(f"{path}: not in UTF-8: {error}") from error


def _lines(path: Path) -> Iterator[tuple[str, Row]]:
    lines = _read_text(path).splitlines(keepends=True)
    for number, line in enumerate(lines, start=1):
        if number == len(lines) and not line.endswith("\n"):
            return  # torn by a kill: a complete line ends in a newline
        try:
            row = json.loads(line)
        except NO_JSON as error:
            raise MetricsFileError(f"{path}, line {number}: not JSON: {line[:80]!r}") from error
        if not isinstance(row, dict) or not isinstance(row.get("step"), int):
            raise MetricsFileError(
                f"{path}, line {number}: not an object with an integer 'step': {line[:80]!r}"
            )
        yield line, row
