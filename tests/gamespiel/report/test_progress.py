"""Progress of a measurement, on a terminal and elsewhere."""

from __future__ import annotations

import io

from rich.console import Console

from gamespiel.report.progress import progress


def test_plain_lines() -> None:
    """The title is printed at once, then a line every ten seconds, with the time left after a first game.

    After 12 s one game of four is over, in 3 turns: three more take 36 s. After 24 s it is two of four.
    """
    now = [0.0]
    console = Console(file=io.StringIO(), width=60)
    with progress(console, "playing 4 games", 4, clock=lambda: now[0]) as on_step:
        assert console.file.getvalue() == "playing 4 games\n"  # type: ignore[attr-defined]
        for seconds, over in ((5, False), (5, False), (2, True), (8, False), (4, True), (1, False)):
            now[0] += seconds
            on_step(over)
    assert console.file.getvalue().splitlines() == [  # type: ignore[attr-defined]
        "playing 4 games",
        "  0 of 4 episodes, 2 turns in 0:10, - left",
        "  1 of 4 episodes, 4 turns in 0:20, 1:00 left",
    ]


def test_a_bar_that_goes_away() -> None:
    console = Console(file=io.StringIO(), width=60, force_terminal=True, legacy_windows=False)
    with progress(console, "playing 2 games", 2) as on_step:
        on_step(False)
        on_step(True)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\n" in text and "1/2" in text and "2 turns in" in text
    assert text.endswith("\x1b[?25h\r\x1b[1A\x1b[2K")  # the cursor is back, and the bar's line is erased
