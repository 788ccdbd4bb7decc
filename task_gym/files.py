"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


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
