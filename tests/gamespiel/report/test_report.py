"""The dashboard, the progress of a measurement, tables and the names of result files."""

from __future__ import annotations

import io
import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from gamespiel.report.console import make_console
from gamespiel.report.endpoints import rows_of
from gamespiel.report.progress import report_progress
from gamespiel.report.results import name_results
from gamespiel.report.tables import make_pairs_table, summary_table
from gamespiel.report.text import format_duration, keep_last_lines, print_json
from gamespiel.training.dashboard import Dashboard, Pace, groups_line, plain_line, sparkline
from gamespiel.training.measures import pair_scores
from tests.consoles import quiet, read_console

METRICS = {
    "rollout/reward": 0.5123,
    "rollout/success": 0.48,
    "train/kl_ref": 0.0123,
    "train/entropy": 0.8111,
    "rollout/legal_mass": 0.93,
    "time/decisions_per_second": 95.2,
}


class Clock:
    """A clock that the test moves."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def terminal(width: int = 80) -> Console:
    return make_console(file=io.StringIO(), width=width, height=40, force_terminal=True, legacy_windows=False)


def test_plain_line() -> None:
    assert plain_line({"step": 12, **METRICS}, 100, 31.4) == (
        "step 12/100  reward 0.512  success 0.480  kl 0.0123  entropy 0.811  legal_mass 0.930  dec/s 95  "
        "left 0:31"
    )
    nothing = "step 1/9  reward -  success -  kl -  entropy -  legal_mass -  dec/s -  left -"
    assert plain_line({"step": 1, "rollout/reward": float("nan")}, 9, None) == nothing


STAGED = {
    "curriculum/name": "hard \x1b[31mgames",
    "curriculum/progress": 0.634,
    "curriculum/success_rate": 0.44,
    "replay/share": 0.28125,
    "replay/size": 1000,
    "replay/mastered": 12,
}


def view(dashboard: Dashboard) -> str:
    """Returns the live display, without its styles."""
    console = quiet(80)
    console.print(dashboard._render())
    return read_console(console)


def test_a_curriculum_is_shown_where_there_is_one(clock: Clock) -> None:
    line = plain_line({"step": 12, **METRICS, **STAGED}, 100, None)
    assert line.endswith(r"dec/s 95  stage hard \x1b[31mgames  to_next_stage 0.63  replays 0.28  left -")
    with Dashboard(100, console=terminal(), clock=clock) as dashboard:
        dashboard.update({"step": 1, **METRICS, **STAGED})
        body = view(dashboard)
    assert {len(line) for line in body.splitlines()} == {80}
    assert re.search(r"stage +hard \\x1b.*to next stage +63%.*stage success +44\.0%", body)
    assert re.search(r"replays +28\.1%.*failures kept +1,000.*mastered +12", body)


def test_groups_of_a_step_have_their_success() -> None:
    """Groups without an episode in the step have none; a name has no controls."""
    rows = {"curriculum/success/a\x1b": 0.5, "curriculum/success/b": 1.0, "curriculum/episodes": 3}
    assert groups_line(rows).plain == r"success  a\x1b 50%  b 100%"
    assert groups_line({}).plain == "success"


def test_plain_mode_thins_out_but_keeps_first_and_last(clock: Clock) -> None:
    """One second per step, a line every two: 1, 3, 5, and 6 because it is the last."""
    console = quiet(40)
    with Dashboard(6, console=console, clock=clock) as dashboard:
        for step in range(1, 7):
            clock.now += 1.0
            dashboard.update({"step": step, **METRICS}, text="not shown")
        dashboard.message("saved [bold]here[/bold]")
    lines = read_console(console).splitlines()
    assert [line.split()[1] for line in lines[:-1]] == ["1/6", "3/6", "5/6", "6/6"]
    assert [line.split()[-1] for line in lines[:-1]] == ["0:05", "0:03", "0:01", "0:00"]
    assert lines[-1] == "saved [bold]here[/bold]"
    assert "\x1b" not in read_console(console)


def test_a_long_step_shows_how_far_it_is(clock: Clock) -> None:
    """There is no line for 30 seconds, then one; a terminal shows progress at once."""
    console = quiet(80)
    with Dashboard(9, console=console, clock=clock) as dashboard:
        for seconds, done in ((29, 10), (1, 20), (29, 30), (2, 40)):
            clock.now += seconds
            dashboard.activity("episodes played", done, 1200)
        clock.now += 1
        dashboard.update({"step": 1, **METRICS})
        clock.now += 29
        dashboard.activity("turns learned from", 5, 10)
    lines = read_console(console).splitlines()
    assert lines[:2] == [
        "step 1/9 under way: 20 of 1,200 episodes played",
        "step 1/9 under way: 40 of 1,200 episodes played",
    ]
    assert len(lines) == 3 and lines[2].startswith("step 1/9  reward")


def test_a_resumed_runs_first_step_is_not_the_first(clock: Clock) -> None:
    console = quiet(80)
    with Dashboard(9, done=6, console=console, clock=clock) as dashboard:
        clock.now += 30
        dashboard.activity("turns learned from", 5, 10)
        clock.now += 10
        dashboard.update({"step": 7, **METRICS})
    lines = read_console(console).splitlines()
    assert lines[0] == "step 7/9 under way: 5 of 10 turns learned from, each once per pass"
    assert lines[1].startswith("step 7/9  reward") and lines[1].endswith("left 1:20")  # two steps of 40 s
    with Dashboard(9, done=6, console=terminal(), clock=clock) as dashboard:
        assert "step 6/9" in view(dashboard)
        dashboard.activity("turns learned from", 5, 10)
        assert "under way: 5 of 10 turns learned from, each once per pass" in view(dashboard)


def test_the_cursor_comes_back(clock: Clock) -> None:
    console = terminal()
    with suppress(KeyboardInterrupt), Dashboard(3, console=console, clock=clock) as dashboard:
        dashboard.update({"step": 1})
        dashboard.message("checkpoint \x1b[31mwritten")
        raise KeyboardInterrupt
    output = read_console(console)
    assert output.count("\x1b[?25l") == 1 and output.endswith("\x1b[?25h")
    assert "checkpoint \\x1b[31mwritten\n" in output  # above the display


def test_pace_is_that_of_the_last_steps() -> None:
    """With a window of three marks, only the last two steps' times count: 1 s each."""
    pace = Pace(window=3)
    assert pace.seconds_left(13) is None
    pace.start(0.0)
    for step, now in enumerate((50.0, 51.0, 52.0), start=1):
        pace.add(step, now)
    assert pace.seconds_left(13) == 10.0 and pace.seconds_left(2) == 0.0


def test_summary_table() -> None:
    console = quiet(80)
    after = {"seat 0": 0.625, "games": "200", "new": 2.0}
    console.print(summary_table({"seat 0": 0.5, "games": "200", "old": 1.0}, after))
    rows = [line.split() for line in read_console(console).splitlines() if line.strip()]
    assert rows[0] == ["before", "after", "change"]
    assert rows[2:] == [
        ["seat", "0", "0.500", "0.625", "+0.125"],
        ["games", "200", "200"],
        ["old", "1.000", "-"],
        ["new", "-", "2.000"],
    ]


def test_durations_and_sparklines() -> None:
    """Heights of a sparkline are sevenths of the range; equal values are all low."""
    durations = {None: "-", float("inf"): "-", 0.4: "0:00", 59.6: "1:00", 3723: "1:02:03"}
    assert {seconds: format_duration(seconds) for seconds in durations} == durations
    assert sparkline([0.0, 1.0, 7.0]) == "▁▂█" and sparkline([2.0, 2.0]) == "▁▁"


def test_no_text_is_obeyed_by_a_terminal() -> None:
    """Rich itself leaves out bells and returns; its own colours stay. Tabs stop at multiples of 4."""
    file = io.StringIO()
    console = make_console(file=file, width=80, color_system="standard", force_terminal=True)
    text = Text("a\tb\x1b[2J\x1b]0;t\x07\x9b\rd\u202ee♠", style="red")
    console.print(text)
    assert file.getvalue() == "\x1b[31ma   \x1b[0m\x1b[31mb\\x1b[2J\\x1b]0;t\\x9bd\\u202ee♠\x1b[0m\n"
    console.print(Panel.fit("\x1b[2J"))
    assert "\x1b[2J" not in file.getvalue()


def test_json_is_ascii_where_a_terminal_would_obey(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": "\x1b\x9b\u202e é"})
    out = capsys.readouterr().out
    assert json.loads(out) == {"a": "\x1b\x9b\u202e é"} and "\\u009b\\u202e é" in out


def test_last_lines_are_kept() -> None:
    assert keep_last_lines("\n1\n2\n3\n4\n", 3) == "…\n3\n4"
    assert keep_last_lines("1\n2\n3", 3) == "1\n2\n3"


# -- progress ----------------------------------------------------------------------------------------------


def test_progress_elsewhere_is_lines() -> None:
    """The title at once; then a line every ten seconds.

    Two of four games are reset in 2 s. At 11 s one is over after a turn, which the other was asked for as
    well: two more turns, at 11 s / 2 turns. At 20 s the other is over too, and at 21 s the third is reset:
    two turns are left, at 21 s / 2 turns. At 31 s it has had two turns, like the fourth: none is left.
    """
    now = [0.0]
    console = quiet(60)
    with report_progress(console, "playing 4 games", 4, clock=lambda: now[0]) as on_step:
        assert read_console(console) == "playing 4 games\n"
        begins, ends = (1, False, 0), (9, True, 1)
        steps = [(4, False, 1), (1, False, 1), (4, False, 2)]
        for seconds, over, turns in [begins, begins, ends, ends, begins, begins, *steps]:
            now[0] += seconds
            on_step(over, turns)
    assert read_console(console).splitlines() == [
        "playing 4 games",
        "  1 of 4 episodes, 1 turn in 0:11, 0:11 left",
        "  2 of 4 episodes, 2 turns in 0:21, 0:21 left",
        "  2 of 4 episodes, 5 turns in 0:31, 0:00 left",
    ]


# -- tables ------------------------------------------------------------------------------------------------


BEFORE = [("hex", 0.0), ("go", 0.5), ("hex", 1.0), ("chess", 0.5), ("go", 0.25)]
AFTER = [("hex", 1.0), ("go", 0.5), ("hex", 1.0), ("chess", None), ("go", 0.75)]


def test_other_episodes_are_not_compared() -> None:
    """One game; other numbers of episodes; other games, as after a change of eval_games."""
    assert pair_scores([("hex", 0.0)], [("hex", 1.0)]) == {}
    assert pair_scores(BEFORE, AFTER[:-1]) == pair_scores(BEFORE, AFTER[::-1]) == pair_scores([], AFTER) == {}


def test_differences_are_by_game_and_over_all() -> None:
    """hex: 1 and 0, go: 0 and 1/2; chess had a fault.

    Two differences in [-1, 1] say next to nothing: a bet wins 3/4 of its stake at most, and 40 are needed.
    """
    console = quiet(80)
    rows = pair_scores(BEFORE, AFTER)
    console.print(make_pairs_table(rows))
    lines = [line.split() for line in read_console(console).splitlines() if line.strip()]
    assert lines[0] == ["score", "episodes", "before", "after", "change", "95%", "interval"]
    assert lines[2:4] == [
        ["go", "2", "0.375", "0.625", "+0.250", "-1.000", "…", "+1.000"],
        ["hex", "2", "0.500", "1.000", "+0.500", "-1.000", "…", "+1.000"],
    ]
    assert list(rows) == ["go", "hex", "all"]
    assert rows["all"].episodes == 4 and rows["all"].change[0] == 0.375


def test_an_error_of_null_is_none() -> None:
    played: dict[str, Any] = {"score": 1.0, "success": True, "error": None, "extra": {"game": "a"}}
    failed: dict[str, Any] = {"score": 0.0, "success": False, "error": "away", "extra": {}}
    rows = rows_of([played, played, failed], lambda record: [record["extra"]["game"]])
    assert [(name, row.episodes, row.faults) for name, row in rows.items()] == [("a", 2, 0), ("all", 2, 1)]
    assert rows["all"].score is not None and rows["all"].score.mean == 1.0


def test_results_have_the_names_of_runs_and_models() -> None:
    agents = ["openai:Qwen/Qwen3-4B@http://host:8000/v1", "runs/leduc/", "mcts:50"]
    assert name_results("compare", agents, "hex") == Path("runs/compare-Qwen-Qwen3-4B-leduc-mcts-50-hex.json")
