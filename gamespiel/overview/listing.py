"""``gamespiel runs``: a line per run."""

from __future__ import annotations

import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

from gamespiel.kinds import declaration_of
from gamespiel.overview.reading import Run, find_runs
from gamespiel.report.grid import Grid
from gamespiel.report.summary import SHARE
from gamespiel.report.text import format_duration, print_json


def show_runs(console: Console, places: list[Path], *, as_json: bool = False) -> None:
    """Prints runs with their state and their main figures, the newest first.

    Args:
        console: The console to print on.
        places: Runs, or folders of runs; none for ``runs``.
        as_json: Whether to print JSON.

    Raises:
        InvalidValueError: a place is no folder.
    """
    runs, broken = find_runs(places)
    if as_json:
        print_json([describe_run(run) for run in runs])
        return
    if not runs and not broken:
        console.print("there are no runs")
    if runs:
        console.print(_make_table(runs))
    for why in broken:
        console.print(f"cannot be read: {why}", soft_wrap=True, markup=False)


def describe_run(run: Run) -> dict[str, object]:
    """Returns a run's line as plain data."""
    after = run.summary.get("after", {})
    return {
        "run": str(run.folder),
        "state": run.state,
        "step": run.step,
        "steps": run.config.ppo.num_train_steps,
        "model": run.config.model.model_name,
        "tasks": describe_tasks(run),
        "seed": run.config.run.seed,
        "reward": run.newest("rollout/reward"),
        "held_out": run.newest("eval/score"),
        "best": run.best,
        "score_after": after.get("score"),
        "share_of_best_response": after.get(SHARE, run.newest("eval/share")),
        "decisions": run.newest("decisions"),
        "seconds": run.seconds(),
        "changed": run.changed,
    }


def describe_tasks(run: Run) -> str:
    """Returns what a run plays, in a few words."""
    env = run.config.env
    named = getattr(env, "game", None)
    if named is not None:
        return str(named)
    ranges = None
    if env.task_id is None and env.task_ids:
        ranges = f"{len(env.task_ids)} ranges" if len(env.task_ids) > 1 else "a range"
    return str(env.task_id) if env.task_id is not None else ranges or declaration_of(env).unit


def _make_table(runs: list[Run]) -> Grid:
    columns = ("state", "step", "reward", "held\nout", "best", "after", "time", "changed")
    table = Grid("run", columns, padding=1, least=20)
    for run in runs:
        line = describe_run(run)
        table.add_row(
            Text(str(run.folder)),
            str(line["state"]),
            f"{run.step}/{run.config.ppo.num_train_steps}",
            *(_format_number(line[name]) for name in ("reward", "held_out", "best", "score_after")),
            format_duration(run.seconds()),
            _format_age(time.time() - run.changed),
        )
    return table


def _format_number(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float | int) else "-"


def _format_age(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit} ago"
    return "now"
