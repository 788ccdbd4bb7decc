"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Writes a text file (UTF-8) in one move: a kill leaves the old file or the new one.

    Until the move the text is in a file ``.NAME.partial`` beside it. An error, as of a full disk, removes it.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        with named(path):
            partial.write_text(text, encoding="utf-8")
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
