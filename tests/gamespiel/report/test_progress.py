"""Progress of a measurement, on a terminal and elsewhere."""

from __future__ import annotations

import io

from rich.console import Console

from gamespiel.report.progress import report_progress


def test_plain_lines() -> None:
    """The title at once; then a line every ten seconds.

    Two of four games are reset in 2 s. At 11 s one is over after a turn, which the other was asked for as
    well: two more turns, at 11 s / 2 turns. At 20 s the other is over too, and at 21 s the third is reset:
    two turns are left, at 21 s / 2 turns. At 31 s it has had two turns, like the fourth: none is left.
    """
    now = [0.0]
    console = Console(file=io.StringIO(), width=60)
    with report_progress(console, "playing 4 games", 4, clock=lambda: now[0]) as on_step:
        assert console.file.getvalue() == "playing 4 games\n"  # type: ignore[attr-defined]
        begins, ends = (1, False, 0), (9, True, 1)
        steps = [(4, False, 1), (1, False, 1), (4, False, 2)]
        for seconds, over, turns in [begins, begins, ends, ends, begins, begins, *steps]:
            now[0] += seconds
            on_step(over, turns)
    assert console.file.getvalue().splitlines() == [  # type: ignore[attr-defined]
        "playing 4 games",
        "  1 of 4 episodes, 1 turns in 0:11, 0:11 left",
        "  2 of 4 episodes, 2 turns in 0:21, 0:21 left",
        "  2 of 4 episodes, 5 turns in 0:31, 0:00 left",
    ]


def test_lines_while_few_episodes_are_over() -> None:
    """A searching opponent may move first; answers of one forward come together."""
    now = [0.0]
    console = Console(file=io.StringIO(), width=60)
    with report_progress(console, "playing 9 games", 9, clock=lambda: now[0]) as on_step:
        for _ in range(3):
            now[0] += 5
            on_step(False, 0)
    assert console.file.getvalue().endswith("  0 of 9 episodes, 2 begun in 0:10, - left\n")  # type: ignore[attr-defined]
    now[0] = 0.0
    with report_progress(console, "reading", 100, clock=lambda: now[0]) as on_step:
        for _ in range(99):
            on_step(False, 0)
        now[0] = 198.0
        on_step(True, 1)  # the first of 99 that came together: 2 s each, and one is missing
    assert console.file.getvalue().endswith("  1 of 100 episodes, 1 turns in 3:18, 0:02 left\n")  # type: ignore[attr-defined]


def test_a_bar_that_goes_away() -> None:
    console = Console(file=io.StringIO(), width=60, force_terminal=True, legacy_windows=False)
    with report_progress(console, "playing 2 games", 2) as on_step:
        on_step(False, 1)
        on_step(True, 2)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\n" in text and "1 of 2 episodes, 2 turns" in text
    assert text.endswith("\x1b[?25h\r\x1b[1A\x1b[2K")  # the cursor is back, and the bar's line is erased
