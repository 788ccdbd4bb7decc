"""A terminal of 60 columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from rich.console import Console

from tests.consoles import quiet, read_console

WIDTH = 60


@pytest.fixture
def console() -> Console:
    """A console that is no terminal, 60 columns wide; ``console.file`` has what was printed."""
    return quiet(WIDTH)


def printed(console: Console, program: str = "") -> str:
    """Returns what was printed, after a check of what is true of everything printed there.

    A program is printed as it is, and the terminal wraps its lines.
    """
    text = read_console(console)
    assert "\x1b" not in text  # no colours where nobody sees them
    assert max(map(len, text.replace(program, "").splitlines())) <= WIDTH
    return text


def typed(lines: Iterable[str], prompts: list[str] | None = None) -> Callable[[str], str]:
    """Returns a reader of these lines, and then of the end of input; ``prompts`` collects what it asks."""
    rest = iter(lines)

    def read(prompt: str = "") -> str:
        if prompts is not None:
            prompts.append(prompt)
        try:
            return next(rest)
        except StopIteration:
            raise EOFError from None

    return read
