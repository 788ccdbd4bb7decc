"""Which checkpoints a run has, which it keeps, which was best, and which one a place names.

This needs no PyTorch.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gamespiel.agents.runs.manifest import NAME as MANIFEST
from gamespiel.agents.runs.manifest import is_whole, sync
from task_gym.errors import TaskGymError
from task_gym.files import read_file, write_atomically

FOLDER = "checkpoints"
"""The folder of a run that has its checkpoints, each in ``step-N``."""

BEST = "best.json"
"""The file of that folder that names the best one."""

_NAME = re.compile(r"step-(\d+)")


class CheckpointError(TaskGymError):
    """A folder without a checkpoint, or with one of another model, or in which none can be written."""


def find(place: Path | str) -> Path:
    """Returns the checkpoint at a path, made absolute, or the newest one if the path is a run's folder.

    Args:
        place: A path, or RUN@STEP, or RUN@best.

    Raises:
        CheckpointError: there is none.
    """
    run = read_place(place)
    if (run / "state.json").is_file():
        return run.resolve()
    _finish_moves(run)
    paths = checkpoints(run)
    if not paths:
        raise CheckpointError(
            f"checkpoint: {str(run)!r} was given, which holds none; allowed: a run's folder with "
            f"{FOLDER}/step-N in it, or such a folder itself"
        )
    return paths[-1]


def read_place(place: Path | str) -> Path:
    """Returns the path that a place names: RUN@STEP and RUN@best are checkpoints of a run.

    Raises:
        CheckpointError: the run has no such checkpoint.
    """
    path = Path(place)
    if path.exists() or not names_step(place):
        return path
    name, _, which = str(place).rpartition("@")
    run = Path(name)
    by_name = {str(step_of(folder)): folder for folder in checkpoints(run)}
    if (best := read_best(run)) is not None:
        by_name["best"] = best
    if which not in by_name:
        listed = ", ".join(f"{run}@{known}" for known in by_name) or f"a run; {str(run)!r} has no checkpoints"
        needs = "; a run with run.eval_steps has a best one" if which == "best" else ""
        raise CheckpointError(f"checkpoint: {str(place)!r} was given, allowed: {listed}{needs}")
    return by_name[which]


def names_step(place: Path | str) -> bool:
    """Returns whether a place is written as RUN@STEP or RUN@best."""
    return re.search(r".@(best|[0-9]+)$", str(place)) is not None


def _finish_moves(run: Path) -> None:
    """Puts checkpoints in their place whose predecessors of the same step were moved away, before a kill."""
    for partial in (run / FOLDER).glob(".step-*.partial"):
        finish_move(partial.with_name(partial.name.removeprefix(".").removesuffix(".partial")))


def finish_move(target: Path) -> None:
    """Puts a checkpoint in its place whose predecessor was moved away, if a kill came then."""
    partial, old = target.with_name(f".{target.name}.partial"), target.with_name(f".{target.name}.removed")
    if old.exists() and not target.exists() and (partial / MANIFEST).exists() and is_whole(partial):
        with suppress(FileNotFoundError):
            os.replace(partial, target)


def find_whole(run: Path) -> Path:
    """Returns a run's newest checkpoint that is as it was written, made absolute.

    Raises:
        CheckpointError: there is none.
    """
    _finish_moves(run)
    for path in reversed(checkpoints(run)):
        if is_whole(path):
            return path.resolve()
    raise CheckpointError(f"checkpoint: {str(run)!r} was given, which holds none that is whole")


def checkpoints(run: Path) -> list[Path]:
    """Returns a run's checkpoints, oldest first, without partial ones."""
    paths = [path for path in (run / FOLDER).glob("step-*") if _NAME.fullmatch(path.name)]
    return sorted(paths, key=step_of)


def step_of(checkpoint: Path) -> int:
    """Returns the number of steps after which a checkpoint was written, from its folder's name."""
    return int(checkpoint.name.removeprefix("step-"))


def put(partial: Path, target: Path) -> None:
    """Puts a checkpoint that is whole in its place, also if one of the same step is there.

    A kill leaves the one or the other; ``find`` finishes a move that was cut in the middle.
    """
    old = target.with_name(f".{target.name}.removed")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():  # a step that was resumed with other settings
        os.replace(target, old)
    try:
        os.replace(partial, target)
    except FileNotFoundError:  # another process that looked for it has finished the move
        if not target.exists():
            raise
    sync(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def prune(run: Path, keep: int) -> None:
    """Removes all but the newest ``keep`` checkpoints and the best one.

    Each vanishes in one move, so a process that reads it meanwhile never finds half of it.
    """
    best = read_best(run)
    _remove(run, [old for old in checkpoints(run)[:-keep] if old != best])


def mark_best(run: Path, step: int, metric: str, value: float) -> None:
    """Says that the checkpoint of a step is the run's best: ``prune`` keeps it, and RUN@best names it."""
    text = json.dumps({"step": step, "metric": metric, "value": value}) + "\n"
    write_atomically(run / FOLDER / BEST, text)


def read_best(run: Path) -> Path | None:
    """Returns a run's best checkpoint; None if none is marked, or if it is gone."""
    try:
        step = int(json.loads(read_file(run / FOLDER / BEST))["step"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None
    return next((path for path in checkpoints(run) if step_of(path) == step), None)


def leave_later(run: Path, step: int, files: Sequence[Path] = ()) -> Path | None:
    """Moves the checkpoints of later steps aside, so that the run can go on from this one.

    Args:
        run: The run's folder.
        step: The step that it goes back to.
        files: Files that go on from there too; they are copied beside the checkpoints.

    Returns:
        The folder that has them now; None if there were none.
    """
    later = [path for path in checkpoints(run) if step_of(path) > step]
    if not later:
        return None
    number = 1
    while (aside := run / FOLDER / f"left-at-{step:06d}{'' if number == 1 else f'-{number}'}").exists():
        number += 1
    best = read_best(run)
    aside.mkdir()
    for file in files:
        if file.exists():
            shutil.copy2(file, aside / file.name)
    if best is not None and step_of(best) > step:
        os.replace(run / FOLDER / BEST, aside / BEST)
    for path in reversed(later):  # the newest first, so that those left have no gap
        os.replace(path, aside / path.name)
    return aside


def _remove(run: Path, paths: Iterable[Path]) -> None:
    """Removes checkpoints; each vanishes in one move."""
    for path in paths:
        os.replace(path, path.with_name(f".{path.name}.removed"))
    for removed in (run / FOLDER).glob(".step-*.removed"):
        shutil.rmtree(removed)


def remove_after(run: Path, step: int) -> None:
    """Removes a run's checkpoints of later steps, the newest first, so that those left have no gap."""
    _remove(run, [later for later in reversed(checkpoints(run)) if step_of(later) > step])


def require_newest(checkpoint: Path) -> None:
    """Raises unless the checkpoint is its run's newest: later ones, and their metrics, would be lost.

    Raises:
        CheckpointError: the run has later checkpoints.
    """
    newest = checkpoints(checkpoint.parent.parent)[-1:]
    if newest and newest[0].name != checkpoint.name:
        raise CheckpointError(
            f"checkpoint: {str(checkpoint)!r} was given, but {newest[0].name} lies beside it and would be "
            f"overtaken; resume from that one, or from {checkpoint.parent.parent}@{step_of(checkpoint)}, "
            "which moves the later ones aside"
        )


@dataclass
class Best:
    """The best of a run's evaluations.

    Attributes:
        step: The step after which it was measured; None if there was none yet.
        value: Its measure, higher is better.
        since: Later evaluations, none of which was better.
    """

    step: int | None = None
    value: float = 0.0
    since: int = 0

    @classmethod
    def find_best(cls, rows: Iterable[Mapping[str, Any]], metric: str, step: int) -> Best:
        """Returns the best of the evaluations before a step, from the rows of a metrics file.

        Args:
            rows: The rows. An evaluation is logged with the step that follows it.
            metric: The measure's key.
            step: The step at which the run goes on, whose own evaluation is made again.
        """
        best = cls()
        for row in rows:
            value, measured = row.get(metric), row["step"] - 1
            if isinstance(value, int | float) and measured < step:
                best.add(measured, value)
        return best

    def add(self, step: int, value: float) -> bool:
        """Counts an evaluation; returns whether it is the best so far."""
        if self.step is None or value > self.value:
            self.step, self.value, self.since = step, value, 0
            return True
        self.since += 1
        return False
