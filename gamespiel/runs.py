"""The folder of a run: how it is named, which files it holds, and who may write to it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from filelock import FileLock, Timeout

from gamespiel.config import SAVED_NAME, Config, ConfigError, InvalidValueError, saved_config

METRICS = "metrics.jsonl"
CURVE = "learning_curve.png"
SUMMARY = "summary.json"
RUNS = Path("runs")

LOCK = ".lock"
"""Locked by the process that trains. The kernel lets go of it when that process ends, however it ends."""


class RunInUseError(ConfigError):
    """A run's folder in which another process is training."""


def check_free(config: Config) -> None:
    """Raises unless a new run can be written to the folder that the configuration names.

    To be called before a model is loaded: `create` checks again.

    Raises:
        InvalidValueError: the folder holds a run, or is a file.
    """
    if config.run.output_dir is None:
        return
    folder = Path(config.run.output_dir)
    if (folder / SAVED_NAME).exists():
        raise InvalidValueError(
            f"run.output_dir {str(folder)!r} already holds a run: "
            f"go on with --resume {folder}, or name another folder"
        )
    if folder.exists() and not folder.is_dir():
        raise InvalidValueError(f"run.output_dir {str(folder)!r}: File exists")


@contextmanager
def create(config: Config) -> Iterator[Path]:
    """Makes the folder of a new run, which belongs to this process until the context ends.

    A folder without a given name gets a new one in `RUNS`, with a suffix if two runs start in one second.

    Raises:
        InvalidValueError: as `check_free`.
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
    name = config.env.game or config.model.model_name.rsplit("/", 1)[-1]
    stamp = f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-seed{config.run.seed}"
    RUNS.mkdir(parents=True, exist_ok=True)
    for number in count(1):
        folder = RUNS / (stamp if number == 1 else f"{stamp}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        return folder
    raise AssertionError("count() does not end")


@contextmanager
def own(folder: Path) -> Iterator[None]:
    """Keeps every other process, and every other run of this one, out of the folder.

    Raises:
        RunInUseError: another one is training there.
        InvalidValueError: the folder cannot be written to.
    """
    lock = FileLock(folder / LOCK, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        raise RunInUseError(
            f"run {str(folder)!r} is in use: another process is training there; "
            "wait until it has ended, or stop it"
        ) from None
    except OSError as error:
        raise InvalidValueError(f"run {str(folder)!r} cannot be written to: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()


def folder_of(checkpoint: Path, config: Config) -> Path:
    """The folder of the run that a checkpoint belongs to, which is where a resumed run stays.

    Raises:
        InvalidValueError: the configuration asks for another folder.
    """
    folder = checkpoint.parent.parent
    asked = config.run.output_dir  # the run's own, which moves with its folder, or one from the caller
    own_name = saved_config(folder).run.output_dir
    if asked not in (None, own_name) and Path(asked).resolve() != folder.resolve():
        raise InvalidValueError(f"run.output_dir cannot be {asked!r}: a resumed run stays in {str(folder)!r}")
    return folder
