"""Consoles that keep what is printed on them."""

from __future__ import annotations

import io

from rich.console import Console


def quiet(width: int = 120) -> Console:
    return Console(file=io.StringIO(), width=width)


def read_console(console: Console) -> str:
    """Returns what a quiet console was given."""
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()
