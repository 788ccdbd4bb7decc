"""What a run's folder says of it."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gamespiel.agents.runs import kept
from gamespiel.agents.runs.loggers import Row, read_rows
from gamespiel.config import SAVED_NAME, Config, InvalidValueError, saved_config
from gamespiel.runs import LOCK, METRICS, RUNS, SUMMARY
from task_gym.errors import TaskGymError
from task_gym.files import read_json


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
            return float(json.loads((self.folder / kept.FOLDER / kept.BEST).read_text())["value"])
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            return None

    def newest(self, metric: str) -> float | None:
        """Returns the last value of a metric; None if it was never logged."""
        for row in reversed(self.rows):
            value = row.get(metric)
            if isinstance(value, int | float) and not isinstance(value, bool):
                return float(value)
        return None

    def seconds(self) -> float:
        """Returns the seconds that it has trained."""
        return self.newest("seconds") or 0.0


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
    found: list[Run] = []
    broken: list[str] = []
    for folder in dict.fromkeys(folders):
        try:
            found.append(read_run(folder))
        except (TaskGymError, OSError) as error:
            broken.append(f"{folder}: {error}")
    return sorted(found, key=lambda run: run.changed, reverse=True), broken


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
