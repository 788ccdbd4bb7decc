"""Result files: plain data as JSON, each in a place of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from gamespiel.endpoints import PREFIX
from gamespiel.errors import InvalidValueError
from task_gym.files import NO_JSON, read_file, to_json, write_atomically

VALUES = ("sampled", "replies", "exact", "endpoint", "usage", "cost", "comparison", "exploit")
"""The keys of an evaluation's values. All others say what was evaluated, and how."""


def write_json(data: Mapping[str, Any], path: Path) -> None:
    """Writes results, whole or not at all; values that are not finite become null."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(_to_plain(data), indent=2, ensure_ascii=False) + "\n")


def name_results(command: str, agents: Sequence[str], label: str) -> Path:
    """Returns the first choice of a file for results of several agents, or of one that may be no run."""
    models = [  # of an endpoint its model, of any other name its last folder
        agent.removeprefix(PREFIX).partition("@http")[0]
        if agent.startswith(PREFIX)
        else agent.strip("/").rpartition("/")[2]
        for agent in agents
    ]
    stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", f"{command}-{'-'.join(models)}-{label}")
    return Path("runs") / f"{stem[:150]}.json"


@contextmanager
def reserve_results(question: Mapping[str, Any], first: Path, output: Path | None) -> Iterator[Path]:
    """Reserves the file of an evaluation's results before it begins.

    The file is ``output``, or ``first`` with a number if another evaluation has that name. Only the results
    of the very same evaluation are overwritten. If the evaluation fails, a new file is removed.

    Args:
        question: The results without their values.
        first: The first choice of a name.
        output: The file that the user named.

    Raises:
        InvalidValueError: the file cannot be written.
    """
    try:
        path, new = _reserve_file(question, first) if output is None else _touch_file(output)
    except OSError as error:
        raise InvalidValueError(
            f"results cannot be written to {str(output or first.parent)!r}: {error.strerror}"
        ) from error
    try:
        yield path
    except BaseException:
        if new:
            path.unlink(missing_ok=True)
        raise


def _reserve_file(question: Mapping[str, Any], first: Path) -> tuple[Path, bool]:
    first.parent.mkdir(parents=True, exist_ok=True)
    for number in count(1):
        path = first if number == 1 else first.with_stem(f"{first.stem}-{number}")
        try:
            path.open("x").close()  # exclusively: other evaluations may look for a place now
            return path, True
        except FileExistsError:
            if _read_question(path) == _to_plain(question):
                path.open("a").close()
                return path, False
    raise AssertionError("count() does not end")


def _read_question(path: Path) -> Any:
    """Returns the question of a result file; None for a file of another program, or a reserved one."""
    try:
        results = json.loads(read_file(path))
    except NO_JSON:
        return None
    if not isinstance(results, dict):
        return None
    return {key: value for key, value in results.items() if key not in VALUES}


def _touch_file(path: Path) -> tuple[Path, bool]:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    path.open("a").close()
    return path, new


def check_writable(path: Path, option: str) -> None:
    """Raises InvalidValueError unless a file can be written at the path that an option names."""
    try:
        new = _touch_file(path)[1]
    except OSError as error:
        raise InvalidValueError(f"{option} {str(path)!r} cannot be written: {error.strerror}") from error
    if new:
        path.unlink()


def _to_plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_plain(item) for item in value]
    return to_json(value)
