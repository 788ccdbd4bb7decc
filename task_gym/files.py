"""Files that are written whole or not at all, and files and JSON of strangers, read safely."""

from __future__ import annotations

import errno
import json
import math
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from task_gym.errors import TaskGymError

NO_JSON = (ValueError, RecursionError)
"""The errors of reading JSON: a RecursionError if lists are nested too deeply, else a ValueError, as for bad
UTF-8 or a number of too many digits."""

MOST = 1 << 30
"""The most bytes of a file that is read whole."""


def read_file(path: Path, most: int = MOST) -> bytes:
    """Returns the content of an ordinary file. A stranger's may be a pipe, a device, or without an end.

    Raises:
        OSError: it cannot be read, is no ordinary file, or has more than ``most`` bytes.
    """
    content = bytearray()
    with open(path, "rb", opener=_open_at_once) as file:
        status = os.fstat(file.fileno())
        check_ordinary(path, status.st_mode, status.st_size, most)
        while piece := file.read(1 << 24):
            content += piece
            check_ordinary(path, status.st_mode, len(content), most)
    return bytes(content)


def check_ordinary(path: Path, mode: int, size: int, most: int = MOST) -> None:
    """Raises OSError if a mode and a size are not those of an ordinary file of at most ``most`` bytes."""
    if not stat.S_ISREG(mode):
        raise OSError(errno.ENXIO, "it is no ordinary file", str(path))
    if size > most:
        raise OSError(errno.EFBIG, f"it has more than {most >> 20:,} MiB, which is the most", str(path))


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))  # a pipe without a writer would be waited for


def write_atomically(path: Path, content: str | bytes) -> None:
    """Writes a file (a text as UTF-8) in one move: a kill leaves the old file or the new one.

    Until the move the content is in a file ``.NAME.partial`` beside it. An error, as of a full disk, removes
    it.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        with named(path):
            partial.write_bytes(content.encode() if isinstance(content, str) else content)
            os.replace(partial, path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Gives errors within the context the name of the file, which those of writing lack (a full disk's)."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(path)
        raise


def read_json(path: Path, error: type[TaskGymError]) -> Any:
    """Returns the object that a file of JSON in UTF-8 has.

    Raises:
        error: it cannot be read, is no JSON, is nested too deeply, or is no object.
    """
    try:
        content = json.loads(read_file(path).decode("utf-8-sig"))
    except OSError as failure:
        raise error(f"{str(path)!r} cannot be read: {failure.strerror}") from failure
    except NO_JSON as failure:
        raise error(f"{str(path)!r} cannot be read: {explain_json(failure)}") from failure
    if not isinstance(content, dict):
        raise error(f"{str(path)!r} has {content!r:.60}, needed: an object")
    return content


def explain_json(failure: Exception) -> str:
    """Returns why a text is no JSON, given an error of ``NO_JSON``."""
    if isinstance(failure, RecursionError):
        return "its lists and objects are nested too deeply"
    return " ".join(str(failure).split())


def read_finite(text: str) -> float:
    """Returns a number of JSON; for ``parse_constant`` and ``parse_float`` of ``json.loads``.

    Raises:
        ValueError: it is not finite.
    """
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text:.40} was given, allowed: finite numbers")
    return number


def append_line(path: Path, line: str, errors: str = "strict") -> None:
    """Appends a line (UTF-8) and its end to a file, which is left as it was if there is an error.

    A kill can leave a part of the line, without its end.
    """
    with named(path), path.open("ab", buffering=0) as file:
        size, left = file.tell(), memoryview(f"{line}\n".encode(errors=errors))
        try:
            while left:
                left = left[file.write(left) :]
        except OSError:
            with suppress(OSError):
                file.truncate(size)
            raise


def free_space(place: Path) -> str:
    """Returns how much can be written to a folder or beside a file, as "3.2 MiB are free in 'runs/a'"."""
    folder = next(above for above in (place, *place.absolute().parents) if above.is_dir())
    return f"{shutil.disk_usage(folder).free / 2**20:,.1f} MiB are free in {str(folder)!r}"


def to_json(value: Any) -> Any:
    """Returns ``value`` as JSON data; a number that is not finite becomes None.

    Raises:
        TypeError: JSON has no such type.
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    raise TypeError(
        f"a metric must be a number, text, or a list of them, not {type(value).__name__}: {value!r}"
    )
