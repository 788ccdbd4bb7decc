"""Ctrl-C, SIGTERM, SIGHUP and lost readers: a run stops with a checkpoint, or goes on."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gamespiel import measures, training
from gamespiel.config import saved_config
from gamespiel.records import read_records
from gamespiel.report.dashboard import Dashboard
from gamespiel.stopping import Stop, Stopped, asking, interrupting
from tests.gamespiel.runs import (
    ROOT,
    STEPS,
    assert_same_run,
    quiet,
    small,
    steps_of,
    train_command,
    train_quietly,
)


def signalled(
    monkeypatch: pytest.MonkeyPatch, run: Path, when: Callable[[str, int], bool], *numbers: int, **more: str
) -> tuple[int, str]:
    """Trains, with signals when the display shows a phase of a step; returns the signal and what was said."""
    activity = Dashboard.activity
    numbers_left = list(numbers)

    def interrupting(self: Dashboard, phase: str, done: int, total: int) -> None:
        activity(self, phase, done, total)
        if numbers_left and when(phase, self._pace.step):
            while numbers_left:
                signal.raise_signal(numbers_left.pop(0))

    console = quiet()
    with monkeypatch.context() as patch:
        patch.setattr(Dashboard, "activity", interrupting)
        with pytest.raises(Stopped) as caught:
            training.train(small(run, **{"run__checkpoint_every": "100"} | more), console=console)
    return caught.value.number, console.file.getvalue()  # type: ignore[attr-defined]


def test_a_hangup_stops_after_the_last_whole_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In an update, which ends. A shell that loses its connection sends several: the first counts."""
    run, before, three = tmp_path / "run", signal.getsignal(signal.SIGHUP), [signal.SIGHUP] * 3
    caught, said = signalled(monkeypatch, run, lambda *where: where == ("turns learned from", 3), *three)
    assert caught == signal.SIGHUP and signal.getsignal(signal.SIGHUP) is before
    assert "SIGHUP: stopping with a checkpoint\n" in said
    assert f"stopped after step 4 of {STEPS}" in said and steps_of(run) == [0, 4]
    # Nothing is evaluated after it.
    assert "after training" not in said and "after" not in json.loads((run / "summary.json").read_text())
    assert f"gamespiel eval --checkpoint {run} --exact" in said and f"gamespiel train --resume {run}" in said
    assert {row["step"] for row in read_records(run)} == {0}


def test_each_resume_keeps_the_games_of_before_and_after_alone(tmp_path: Path) -> None:
    run = tmp_path / "run"
    train_quietly(small(run, ppo__num_train_steps="1"))
    assert [row["step"] for row in read_records(run)] == [0] * 6 + [1] * 6
    config = small(run, ppo__num_train_steps="2")
    train_quietly(config, resume=run)
    assert [row["step"] for row in read_records(run)] == [0] * 6 + [2] * 6


def test_a_step_that_outlasts_the_grace_is_given_up(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights are half updated: the last checkpoint is that of step 2, and the rest is played again."""
    run, more = tmp_path / "run", {"run__grace_seconds": "1e-9", "run__checkpoint_every": "2"}
    caught, said = signalled(
        monkeypatch, run, lambda *where: where == ("turns learned from", 3), signal.SIGTERM, **more
    )
    assert caught == signal.SIGTERM and steps_of(run) == [0, 2]
    assert "(run.grace_seconds): the checkpoint is that of step 2" in " ".join(said.split())
    train_quietly(saved_config(run), resume=run)
    assert_same_run(run, finished)


def test_a_signal_during_an_evaluation_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before training there is the checkpoint of step 0; the run is resumed from there."""
    run, usual = tmp_path / "run", signal.getsignal(signal.SIGTERM)

    def measured(*arguments: Any) -> Any:
        signal.raise_signal(signal.SIGTERM)
        raise AssertionError("the evaluation went on")

    with monkeypatch.context() as patch:
        patch.setattr(measures, "measure_result", measured)
        with pytest.raises(Stopped, match="SIGTERM"):
            train_quietly(small(run))
    assert steps_of(run) == [0] and signal.getsignal(signal.SIGTERM) is usual


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """``nohup`` ignores SIGHUP."""
    usual = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stop = Stop()
        with interrupting(), asking(stop):
            signal.raise_signal(signal.SIGHUP)
        assert not stop.asked
    finally:
        signal.signal(signal.SIGHUP, usual)


def test_only_sigterm_has_a_deadline() -> None:
    stop = Stop(grace=0.0)
    stop.ask(signal.SIGHUP)
    assert stop.asked and not stop.late
    stop.ask(signal.SIGTERM)
    time.sleep(0.001)
    assert stop.late and stop.number == signal.SIGHUP


@pytest.mark.launch
def test_the_command_returns_the_signals_status(tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = subprocess.Popen(
        train_command(run), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    deadline = time.monotonic() + 300
    while not (run / "metrics.jsonl").exists() and time.monotonic() < deadline:
        time.sleep(0.002)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert "gamespiel: stopped by SIGTERM\n" in said and "Traceback" not in said
    assert steps_of(run)[-1] < STEPS


@pytest.mark.launch
def test_a_closed_pipe_does_not_end_a_run(finished: Path, tmp_path: Path) -> None:
    """``python train.py | head -1``."""
    run = tmp_path / "run"
    process = subprocess.Popen(
        train_command(run), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stderr is not None and process.stdout.readline()
    process.stdout.close()
    said = process.stderr.read()
    assert process.wait(300) == 0 and "Traceback" not in said and "Broken pipe" not in said
    assert_same_run(run, finished)


@pytest.mark.launch
def test_a_lost_terminal_leaves_a_checkpoint_and_status_129(tmp_path: Path) -> None:
    """The terminal's other end closes: SIGHUP comes, and nothing can be written any more."""
    run = tmp_path / "run"
    ours, theirs = pty.openpty()
    take_terminal = (
        "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    more = {"run__checkpoint_every": "100", "ppo__num_train_steps": "3000", "run__exact_every": "0"}
    process = subprocess.Popen(
        [sys.executable, "-c", take_terminal, *train_command(run, **more)],
        cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env=os.environ | {"TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    metrics, deadline = run / "metrics.jsonl", time.monotonic() + 300
    while not metrics.exists() or metrics.read_text().count("\n") < 2:
        assert process.poll() is None and time.monotonic() < deadline
        if select.select([ours], [], [], 0.01)[0]:
            os.read(ours, 65536)  # or the process would wait for a reader
    os.close(ours)
    assert process.wait(timeout=60) == 129
    first, stopped = steps_of(run)
    assert first == 0 and stopped == metrics.read_text().count("\n")
