"""``gamespiel trace``: a person says what a program prints."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import zip_longest
from typing import Any

import gymnasium as gym
from rich import box
from rich.console import Console
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

import trace_gym  # noqa: F401  (registers CodeTrace-v0)
from gamespiel.report.console import make_console
from gamespiel.terminal.screen import rule
from task_gym.visible import show_controls

END = "."
"""The line that ends an answer, as the end of input does."""


def trace(
    *,
    task_id: int | None = None,
    level: int | None = None,
    family: str | None = None,
    seed: int | None = None,
    console: Console | None = None,
    read: Callable[[str], str] | None = None,
) -> dict[str, Any]:
    """Shows a program, asks for its output and shows the scores; returns the last info.

    Args:
        task_id: The task; None draws one.
        level: Draws among tasks of this level.
        family: Draws among tasks of this family.
        seed: The seed of the draw.
        console: The console to print on.
        read: Asks for a line, as ``input`` does; None for ``input``.

    Raises:
        TaskGymError: there is no such task.
    """
    console = console or make_console()
    env: Any = gym.make("CodeTrace-v0", disable_env_checker=True, task_id=task_id, level=level, family=family)
    _, info = env.reset(seed=seed)
    task = env.unwrapped.trace
    console.print(Text(f"task {info['task_id']}: {info['family']}, level {info['level']}", style="bold"))
    # Only the terminal wraps long lines: what is copied or piped is the program.
    code = Syntax("", "python", background_color="default").highlight(show_controls(task.code.rstrip("\n")))
    console.print(code, soft_wrap=True, end="")
    if task.stdin:
        console.print(rule("standard input"))
        console.print(Text(show_controls(task.stdin.rstrip("\n"))), soft_wrap=True)
    console.print(f"What does it print? End with a line that is only {END!r}, or with Ctrl-D.")
    reply, ask = "", read or input
    with suppress(EOFError):
        for line in iter(lambda: ask(""), END):
            reply += f"{line}\n"
    *_, info = env.step(reply)
    console.print(rule("your output | true output"))
    console.print(_compare_lines(reply, info["truth"]))
    for scoring, score in info["by_scoring"].items():
        console.print(f"{scoring:<8}{score:.3f}")
    env.close()
    return dict(info)


def _compare_lines(reply: str, truth: str) -> Table:
    """Returns the answer's lines beside the true ones, with a mark at each that differs."""
    table = Table(box=box.SIMPLE, show_header=False, show_edge=False, pad_edge=False)
    table.add_column(width=1)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    # Only "\n" ends a line of output: another character of splitlines would hide behind it.
    sides = (show_controls(text).splitlines() for text in (reply, truth))
    for line, true in zip_longest(*sides):
        right = line is not None and true is not None and line.rstrip() == true.rstrip()
        table.add_row(" " if right else "x", Text(line or ""), Text(true or ""))
    return table
