"""Progress of a measurement: a bar on a terminal, occasional lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from gamespiel.report.text import duration

EVERY = 10.0
"""Seconds between plain lines."""

OnStep = Callable[[bool], None]
"""Called after each step of an environment: True if the step ended an episode."""


@contextmanager
def progress(
    console: Console, title: str, episodes: int, clock: Callable[[], float] = time.monotonic
) -> Iterator[OnStep]:
    """Prints ``title`` at once and, until the context ends, how many of the episodes are over.

    The time left is an estimate from the time per episode so far, so it needs a first episode that is over.
    Until then the number of turns shows progress.

    Args:
        console: The console to print to.
        title: Says what is measured.
        episodes: Number of episodes.
        clock: Returns seconds, from any start.

    Yields:
        A function to call after each step.
    """
    console.print(title, soft_wrap=True, markup=False)
    started = last = clock()
    over = turns = 0

    def state() -> str:
        spent = clock() - started
        left = spent / over * (episodes - over) if over else None
        return f"{turns:,} turns in {duration(spent)}, {duration(left)} left"

    if not console.is_terminal:

        def print_line(ended: bool) -> None:
            nonlocal over, turns, last
            over, turns = over + ended, turns + 1
            if clock() - last >= EVERY:
                last = clock()
                console.print(f"  {over:,} of {episodes:,} episodes, {state()}", soft_wrap=True, markup=False)

        yield print_line
        return

    columns = (BarColumn(bar_width=None), MofNCompleteColumn(), TextColumn("{task.fields[state]}"))
    with Progress(*columns, console=console, transient=True, expand=True) as bars:
        bar = bars.add_task("", total=episodes, state=state())

        def move_bar(ended: bool) -> None:
            nonlocal over, turns
            over, turns = over + ended, turns + 1
            bars.update(bar, completed=over, state=state())

        yield move_bar
