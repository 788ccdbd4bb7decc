"""The contents of runs' folders, and ``gamespiel runs``: a line per run."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from gamespiel.agents.runs import catalog
from gamespiel.agents.runs.loggers import Row, read_rows
from gamespiel.config import SAVED_NAME, Config, InvalidValueError, saved_config
from gamespiel.kinds import kind_of
from gamespiel.report.tables import Grid
from gamespiel.report.text import format_duration, print_json, print_plain
from gamespiel.runs import LOCK, METRICS, RUNS, SHARE, SUMMARY
from task_gym.arguments import is_number
from task_gym.errors import TaskGymError
from task_gym.files import read_file, read_json


@dataclass(frozen=True)
class Run:
    """A run as its folder has it.

    Attributes:
        folder: The folder.
        config: Its configuration.
        rows: Its metrics, a row per step.
        summary: The measures before and after training, as far as they are there.
        changed: When it was last written to, in seconds since 1970.
    """

    folder: Path
    config: Config
    rows: list[Row] = field(repr=False)
    summary: dict[str, Any] = field(repr=False)
    changed: float

    @property
    def step(self) -> int:
        """The complete steps."""
        return max((row["step"] for row in self.rows), default=0)

    @property
    def state(self) -> str:
        """One of "training", "finished" and "stopped"."""
        if is_locked(self.folder / LOCK):
            return "training"
        return "finished" if "after" in self.summary else "stopped"

    @property
    def best(self) -> float | None:
        """The best measure of its evaluations while training."""
        try:
            return float(json.loads(read_file(self.folder / catalog.FOLDER / catalog.BEST))["value"])
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return None

    def newest(self, metric: str) -> float | None:
        """Returns the last value of a metric; None if it was never logged."""
        for row in reversed(self.rows):
            if is_number(value := row.get(metric)):
                return float(value)
        return None


def read_run(folder: Path) -> Run:
    """Returns the run of a folder.

    Raises:
        TaskGymError: it is no run, or a file of it cannot be read.
    """
    config = saved_config(folder)
    metrics, summary = folder / METRICS, folder / SUMMARY
    rows = read_rows(metrics) if metrics.exists() else []
    measured = read_json(summary, InvalidValueError) if summary.exists() else {}
    changed = max(path.stat().st_mtime for path in (metrics, folder / SAVED_NAME) if path.exists())
    return Run(folder, config, rows, measured, changed)


def find_runs(places: list[Path]) -> tuple[list[Run], list[str]]:
    """Returns the runs in folders, the newest first, and why others cannot be read.

    Args:
        places: Runs, or folders of runs; none for ``runs``.
    """
    folders: list[Path] = []
    for place in places or [RUNS]:
        if (place / SAVED_NAME).exists():
            folders.append(place)
        elif place.is_dir():
            folders += sorted(path.parent for path in place.glob(f"*/{SAVED_NAME}"))
        elif places:
            raise InvalidValueError(f"{str(place)!r} was given, allowed: a run, or a folder of runs")
    runs: list[Run] = []
    broken: list[str] = []
    for folder in dict.fromkeys(folders):
        try:
            runs.append(read_run(folder))
        except (TaskGymError, OSError) as error:
            broken.append(f"{folder}: {error}")
    return sorted(runs, key=lambda run: run.changed, reverse=True), broken


def is_locked(lock: Path) -> bool:
    """Returns whether another process holds a lock on a file, without trying it.

    Who tries it holds it for a moment, in which a run that begins would find it taken. So where the kernel
    does not list its locks, a run that was written to in the last minute counts as one that trains.
    """
    try:
        here = lock.stat()
    except OSError:
        return False
    if sys.platform == "linux":
        held = f"{os.major(here.st_dev):02x}:{os.minor(here.st_dev):02x}:{here.st_ino}"
        try:
            lines = Path("/proc/locks").read_text().splitlines()
            return any(held in line.split() for line in lines if "->" not in line)
        except OSError:
            pass
    metrics = lock.with_name(METRICS)
    return metrics.exists() and time.time() - metrics.stat().st_mtime < 60


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
        print_plain(console, f"cannot be read: {why}")


def describe_run(run: Run) -> dict[str, Any]:
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
        "seconds": run.newest("seconds") or 0.0,
        "changed": run.changed,
    }


def describe_tasks(run: Run) -> str:
    """Returns what a run plays, in a few words."""
    env = run.config.env
    game = getattr(env, "game", None)
    if game is not None or env.task_id is not None:
        return str(env.task_id if game is None else game)
    if env.task_ids:
        return f"{len(env.task_ids)} ranges" if len(env.task_ids) > 1 else "a range"
    return kind_of(env).unit


def _make_table(runs: list[Run]) -> Grid:
    columns = ("state", "step", "reward", "held\nout", "best", "after", "time", "changed")
    table = Grid("run", columns, padding=1, least=20)
    for run in runs:
        line = describe_run(run)
        table.add_row(
            Text(str(run.folder)),
            line["state"],
            f"{line['step']}/{line['steps']}",
            *(_format_number(line[name]) for name in ("reward", "held_out", "best", "score_after")),
            format_duration(line["seconds"]),
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
