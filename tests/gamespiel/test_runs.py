"""A run's folder belongs to one process."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from gamespiel import runs
from gamespiel.config import InvalidValueError, save
from gamespiel.runs import RunInUseError
from tests.gamespiel.runs import small


def test_runs_that_start_in_one_second_have_a_folder_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runs.time, "strftime", lambda form: "20260102-030405")
    config = small(tmp_path)
    unnamed = dataclasses.replace(config, run=dataclasses.replace(config.run, output_dir=None))
    with ExitStack() as stack:
        folders = [stack.enter_context(runs.create(unnamed)) for _ in range(3)]
    name = Path("runs/kuhn_poker-20260102-030405-seed3")
    assert folders == [name, Path(f"{name}-2"), Path(f"{name}-3")]


def test_a_named_folder_is_one_runs(tmp_path: Path) -> None:
    config = small(tmp_path / "run")
    with (
        runs.create(config) as folder,
        pytest.raises(RunInUseError, match=f"run '{folder}' is in use"),
        runs.create(config),
    ):
        raise AssertionError("two runs have the folder")
    save(config, folder / "config.yaml")
    for attempt in (runs.check_free, lambda config: runs.create(config).__enter__()):
        with pytest.raises(InvalidValueError, match="already holds a run: go on with --resume"):
            attempt(config)
    with pytest.raises(InvalidValueError, match=r"run.output_dir .*/run': Not a directory"):
        runs.create(small(folder / "config.yaml" / "run")).__enter__()


def test_a_kill_lets_go(tmp_path: Path) -> None:
    """The lock is released even if a child of the killed process lives on."""
    reading, writing = os.pipe()
    process = os.fork()  # which has imported everything
    if not process:
        try:
            with runs.own(tmp_path):
                child = subprocess.Popen(["sleep", "60"])
                os.write(writing, f"{child.pid}\n".encode())
                time.sleep(60)
        finally:
            os._exit(1)
    os.close(writing)
    with open(reading) as told:
        child_id = int(told.readline())
    try:
        with pytest.raises(RunInUseError), runs.own(tmp_path):
            pass
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.kill(child_id, 0)  # it lives
        with runs.own(tmp_path):
            pass
    finally:
        os.kill(child_id, signal.SIGKILL)


def test_a_run_that_was_faster_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process writes a run to the folder between the first check and the lock."""
    config, own = small(tmp_path / "run"), runs.own

    def slow(folder: Path) -> object:
        save(config, folder / "config.yaml")
        return own(folder)

    runs.check_free(config)
    monkeypatch.setattr(runs, "own", slow)
    with pytest.raises(InvalidValueError, match="already holds a run"), runs.create(config):
        raise AssertionError("the other run was overwritten")
