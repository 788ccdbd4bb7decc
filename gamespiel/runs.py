"""The folders of runs: their names, their files, and the lock that gives one process a folder."""

from __future__ import annotations

import errno
import os
import platform
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from gamespiel.agents.launch import Launch
from gamespiel.agents.runs import catalog
from gamespiel.config import SAVED_NAME, Config, ConfigError, InvalidValueError, saved_config
from gamespiel.kinds import kind_of
from gamespiel.usage import command
from task_gym.errors import TaskGymError
from task_gym.files import free_space, write_atomically

METRICS = "metrics.jsonl"
CURVE = "learning_curve.png"
SUMMARY = "summary.json"
RUNS = Path("runs")

SHARE = "share of best response"
"""The name in the summary of the exact measure that every solved game has."""

LOCK = ".lock"
"""Locked by the process that trains. The kernel releases the lock when that process ends, however it ends."""


class RunInUseError(ConfigError):
    """A run's folder in which another process is training."""


def check_free(config: Config) -> None:
    """Raises unless a new run can be written to the folder that the configuration names.

    Call this before a model is loaded; ``create`` checks again.

    Raises:
        InvalidValueError: the folder already has a run, or is a file.
    """
    if config.run.output_dir is None:
        return
    if not config.run.output_dir.strip():
        raise InvalidValueError("run.output_dir is empty: name a folder, or leave it out")
    folder = Path(config.run.output_dir)
    if (folder / SAVED_NAME).exists():
        raise InvalidValueError(
            f"run.output_dir {str(folder)!r} already holds a run: "
            f"go on with --resume {folder}, or name another folder"
        )
    # A kill right after the start leaves nothing but the checkpoint of step 0, which may be written again.
    if [path.name for path in catalog.checkpoints(folder)[-1:]] not in ([], ["step-000000"]):
        raise InvalidValueError(
            f"run.output_dir {str(folder)!r} has checkpoints, but no {SAVED_NAME}: name another folder"
        )
    above = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not above.is_dir():
        raise InvalidValueError(f"run.output_dir {str(folder)!r}: {str(above)!r} is a file")
    if not os.access(above, os.W_OK | os.X_OK):
        raise InvalidValueError(f"run.output_dir {str(folder)!r}: {str(above)!r} cannot be written to")


@contextmanager
def create(config: Config) -> Iterator[Path]:
    """Makes the folder of a new run, and keeps other processes out of it until the context ends.

    Without ``run.output_dir`` the folder gets a new name in ``RUNS``, with a suffix if two runs start in one
    second.

    Raises:
        InvalidValueError: as ``check_free`` does, or the folder cannot be made.
        RunInUseError: another process is training there.
    """
    try:
        folder = _new_folder(config)
    except OSError as error:
        where = str(config.run.output_dir or RUNS)
        raise InvalidValueError(f"run.output_dir {where!r}: {error.strerror}") from error
    with own(folder):
        check_free(config)  # another run may have been faster
        yield folder


def _new_folder(config: Config) -> Path:
    if config.run.output_dir is not None:
        folder = Path(config.run.output_dir)
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    name = kind_of(config.env).run_name(config.env) or config.model.model_name.rsplit("/", 1)[-1]
    stamp = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-seed{config.run.seed}"
    RUNS.mkdir(parents=True, exist_ok=True)
    folder, number = RUNS / stamp, 1
    while True:
        try:
            folder.mkdir()
            return folder
        except FileExistsError:
            number += 1
            folder = RUNS / f"{stamp}-{number}"


def note_folder(folder: Path, launch: Launch) -> None:
    """Notes a run's new folder in ``RUNS`` for the same ranks, if ``torchrun`` has to start them again."""
    if launch.run_id:
        write_atomically(_note_of(launch), f"{folder.resolve()}\n")


def read_noted_folder(launch: Launch) -> Path | None:
    """Returns the folder that these ranks had noted before they were started again; None if none is noted."""
    try:
        return Path(_note_of(launch).read_text().strip())
    except FileNotFoundError:
        return None


def forget_folder(launch: Launch) -> None:
    """Removes the note of ``note_folder``."""
    if launch.run_id:
        _note_of(launch).unlink(missing_ok=True)


def _note_of(launch: Launch) -> Path:
    """Returns the place of a note: a launcher's process starts all worlds of one command."""
    return RUNS / f".launched-{platform.node() or 'here'}-{os.getppid()}"


@contextmanager
def own(folder: Path) -> Iterator[None]:
    """Keeps every other process, and every other run of this process, out of the folder.

    Raises:
        RunInUseError: another run is training there.
        InvalidValueError: the folder cannot be written to.
    """
    lock = FileLock(folder / LOCK, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise RunInUseError(
            f"run {str(folder)!r} is in use: another run is training there; "
            "wait until it has ended, or stop it"
        ) from None
    except OSError as error:
        raise InvalidValueError(f"run {str(folder)!r} cannot be written to: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()


def folder_of(checkpoint: Path, config: Config) -> Path:
    """Returns the folder of a checkpoint's run, in which a resumed run stays.

    Raises:
        InvalidValueError: the configuration asks for another folder.
    """
    folder = checkpoint.parent.parent
    asked = config.run.output_dir  # the run's own, out of date if the folder was moved, or the caller's
    own_name = saved_config(folder).run.output_dir
    if asked not in (None, own_name) and Path(asked).resolve() != folder.resolve():
        raise InvalidValueError(f"run.output_dir cannot be {asked!r}: a resumed run stays in {str(folder)!r}")
    return folder


class DiskFullError(TaskGymError):
    """A file of a run that a full disk cannot take."""


@contextmanager
def require_room(folder: Path) -> Iterator[None]:
    """Says of a full disk which file it could not take, how much is free, and how the run goes on."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise DiskFullError(
            f"{error.filename or str(folder)!r} cannot be written: {error.strerror} "
            f"({free_space(folder)}). Checkpoints are whole; make room and go on: "
            f"{command('train')} --resume {shlex.quote(str(folder))}"
        ) from error
