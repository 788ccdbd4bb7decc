"""Progress of a measurement: a bar on a terminal, occasional lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from gamespiel.report.text import format_duration, print_plain

if TYPE_CHECKING:  # endpoints are evaluated without PyTorch
    from gamespiel.agents.rollout import OnStep

EVERY = 10.0
"""Seconds between plain lines."""


@contextmanager
def report_progress(
    console: Console, title: str, episodes: int, clock: Callable[[], float] = time.monotonic
) -> Iterator[OnStep]:
    """Prints ``title`` at once and, until the context ends, how many of the episodes are over.

    The time left is an estimate from the time per turn and the turns of the episodes that are over, so it
    needs a first one. Until then the numbers of resets and turns show progress.

    Args:
        console: The console to print to.
        title: Says what is measured.
        episodes: Number of episodes.
        clock: Returns seconds, from any start.

    Yields:
        A function to call after each reset and step.
    """
    print_plain(console, title)
    state = _State(episodes, clock)
    if not console.is_terminal:

        def print_line(over: bool, turns: int) -> None:
            state.add(over, turns)
            if clock() - state.printed_at >= EVERY:
                print_plain(console, f"  {state}")
                state.printed_at = clock()

        yield print_line
        return

    with Progress(
        BarColumn(bar_width=None),
        TextColumn("{task.description}"),
        console=console,
        transient=True,
        expand=True,
        get_time=clock,
    ) as bars:
        bar = bars.add_task(str(state), total=episodes)

        def move_bar(over: bool, turns: int) -> None:
            state.add(over, turns)
            bars.update(bar, completed=state.over, description=str(state))

        yield move_bar


class _State:
    """The number of episodes and turns that are done, and the time of the first."""

    def __init__(self, episodes: int, clock: Callable[[], float]) -> None:
        self.over = 0
        self._episodes, self._clock = episodes, clock
        self._started = self.printed_at = clock()
        self._begun = self._turns = self._turns_of_over = self._depth = 0

    def add(self, over: bool, turns: int) -> None:
        """Counts a step of an episode that has had so many turns, or its reset."""
        self.over += over
        self._begun += not turns
        self._turns += bool(turns)
        self._turns_of_over += turns * over
        self._depth = turns

    def _seconds_left(self) -> float | None:
        """Returns an estimate.

        Episodes take turns together. So the live ones will have at least the turns of the latest step, and
        those that have not arrived yet were waited for as well.
        """
        if not self.over or not self._turns:
            return None
        mean = max(self._turns_of_over / self.over, self._depth)
        turns = self._turns_of_over + (self._episodes - self.over) * mean
        waited_for = self._turns_of_over + max(0, self._begun - self.over) * self._depth
        return (self._clock() - self._started) / waited_for * max(0.0, turns - waited_for)

    def __str__(self) -> str:
        turns = f"{self._turns:,} turn{'s' * (self._turns > 1)}" if self._turns else f"{self._begun:,} begun"
        took, left = format_duration(self._clock() - self._started), format_duration(self._seconds_left())
        return f"{self.over:,} of {self._episodes:,} episodes, {turns} in {took}, {left} left"
