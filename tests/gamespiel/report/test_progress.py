"""Progress of a measurement, on a terminal and elsewhere."""

from __future__ import annotations

import io

from rich.console import Console

from gamespiel.report.progress import progress


def test_plain_lines() -> None:
    """The title at once; then a line every ten seconds.

    Four games are reset in 4 s. At 20 s two are over, after a turn each, and the others have had one turn
    each: by what is known, they need no more. At 30 s one of them has had two turns, so the fourth may take
    two: one turn is left, at 30 s / 5 turns.
    """
    now = [0.0]
    console = Console(file=io.StringIO(), width=60)
    with progress(console, "playing 4 games", 4, clock=lambda: now[0]) as on_step:
        assert console.file.getvalue() == "playing 4 games\n"  # type: ignore[attr-defined]
        resets = [(1, False, 0)] * 4
        steps = [(6, False, 1), (5, True, 1), (3, False, 1), (2, True, 1), (10, False, 2)]
        for seconds, over, turns in resets + steps:
            now[0] += seconds
            on_step(over, turns)
    assert console.file.getvalue().splitlines() == [  # type: ignore[attr-defined]
        "playing 4 games",
        "  0 of 4 episodes, 1 turns in 0:10, - left",
        "  2 of 4 episodes, 4 turns in 0:20, 0:00 left",
        "  2 of 4 episodes, 5 turns in 0:30, 0:06 left",
    ]


def test_resets_that_take_long_are_shown() -> None:
    """A searching opponent may move first."""
    now = [0.0]
    console = Console(file=io.StringIO(), width=60)
    with progress(console, "playing 9 games", 9, clock=lambda: now[0]) as on_step:
        for _ in range(3):
            now[0] += 5
            on_step(False, 0)
    assert console.file.getvalue().endswith("  0 of 9 episodes, 2 begun in 0:10, - left\n")  # type: ignore[attr-defined]


def test_a_bar_that_goes_away() -> None:
    console = Console(file=io.StringIO(), width=60, force_terminal=True, legacy_windows=False)
    with progress(console, "playing 2 games", 2) as on_step:
        on_step(False, 1)
        on_step(True, 2)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\n" in text and "1 of 2 episodes, 2 turns" in text
    assert text.endswith("\x1b[?25h\r\x1b[1A\x1b[2K")  # the cursor is back, and the bar's line is erased
