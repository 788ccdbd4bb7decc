"""Ctrl-C, signals, kills and lost readers: a run stops with a checkpoint, or goes on."""

from __future__ import annotations

import json
import os
import pty
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gamespiel.agents.runs import checkpoint
from gamespiel.agents.runs.loggers import read_rows
from gamespiel.cli import main
from gamespiel.config import SAVED_NAME
from gamespiel.measure.records import read_records
from gamespiel.stopping import Stop, Stopped, asking, interrupting
from gamespiel.training import callbacks, measures
from gamespiel.training import run as training
from gamespiel.training.dashboard import Dashboard
from tests.consoles import quiet, read_console
from tests.gamespiel.runs import (
    ROOT,
    STAGED,
    STEPS,
    assert_same_run,
    fork,
    resume,
    rows_of,
    small,
    staged,
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
    return caught.value.number, read_console(console)


def start(run: Path, until: int, **more: str) -> subprocess.Popen[str]:
    """Starts ``python train.py`` in another process; returns it when it has logged ``until`` steps."""
    process = subprocess.Popen(
        train_command(run, **more), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    metrics = run / "metrics.jsonl"
    deadline = time.monotonic() + 600
    while not metrics.exists() or metrics.read_text().count("\n") < until:
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()[0]
        time.sleep(0.002)
    return process


@pytest.mark.trains
@pytest.mark.sample
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


@pytest.mark.trains
@pytest.mark.sample
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
    assert_same_run(resume(run), finished)


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


@pytest.mark.trains
@pytest.mark.sample
def test_ctrl_c_stops_after_the_last_whole_step(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real signal comes when the fourth step is shown: the fifth is begun, dropped and played again."""
    write = callbacks.DisplayWriter.write

    def interrupting(self: callbacks.DisplayWriter, *args: object) -> None:
        write(self, *args)  # type: ignore[arg-type]
        if self._model.step == 4:
            signal.raise_signal(signal.SIGINT)

    console, run = quiet(), tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(callbacks.DisplayWriter, "write", interrupting)
        with pytest.raises(KeyboardInterrupt):
            training.train(small(run, run__checkpoint_every="100"), console=console)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    said = read_console(console)
    assert f"stopped after step 4 of {STEPS}" in said and said.count("Ctrl-C once more stops at once") == 1
    assert steps_of(run) == [0, 4]
    assert rows_of(run) == rows_of(finished)[:4]
    assert_same_run(resume(run), finished)


@pytest.mark.trains
@pytest.mark.sample
def test_a_second_ctrl_c_stops_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupting(self: callbacks.DisplayWriter, *args: object) -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(callbacks.DisplayWriter, "write", interrupting)
    with pytest.raises(KeyboardInterrupt):
        train_quietly(small(tmp_path / "run", run__eval_games="0"))
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert steps_of(tmp_path / "run") == [0]  # not even the checkpoint of the first step


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


@pytest.mark.launch
def test_sigint_leaves_a_checkpoint_from_which_the_command_line_goes_on(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    process = start(run, until=2, run__checkpoint_every="100")
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    (first, stopped) = steps_of(run)
    assert process.returncode == 130  # 128 + SIGINT, as for a shell command that Ctrl-C ended
    assert first == 0 and 2 <= stopped < STEPS
    assert f"stopped after step {stopped} of {STEPS}" in output and "gamespiel: interrupted" in output
    assert output.count("Ctrl-C once more stops at once") == 1 and "Traceback" not in output
    assert rows_of(run) == rows_of(finished)[:stopped]
    assert main(["train", "--resume", str(run)]) == 0
    assert_same_run(run, finished)
    capsys.readouterr()
    assert main(["eval", "--checkpoint", str(run), "--num_episodes", "5"]) == 0
    # If the run's path is long, the title wraps between any two words.
    assert "against random" in " ".join(capsys.readouterr().out.split())
    assert (run / "eval-sampled-kuhn_poker-random.json").is_file()


@pytest.mark.launch
def test_sigkill_loses_no_more_than_the_steps_since_the_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run has a curriculum, whose stages and failures go back with the checkpoint.

    As long as the process trains, another one does not go on with its run; a kill releases it at once.
    """
    run, more = tmp_path / "run", {"run__checkpoint_every": "3"}
    whole = train_quietly(staged(tmp_path / "whole", **more))
    process = start(run, until=5, **more, **STAGED)
    process.send_signal(signal.SIGSTOP)  # or it might end before it is killed
    before = (run / "config.yaml").read_text()
    assert main(["train", "--resume", str(run), "--run.device", "cpu"]) == 2
    assert f"gamespiel: run '{run}' is in use: another run is training there" in capsys.readouterr().err
    assert process.poll() is None and (run / "config.yaml").read_text() == before
    process.kill()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    logged, last_step = len(read_rows(run / "metrics.jsonl")), steps_of(run)[-1]
    assert last_step in (3, 6, 9) and logged >= last_step
    assert rows_of(run) == rows_of(whole)[:logged]
    assert_same_run(resume(run), whole)


def kill_at_random(run: Path, settings: dict[str, str], generator: random.Random) -> bool:
    """Starts a run, or goes on with it, in a fork that it kills at a random moment with SIGKILL.

    Returns whether the last row's stage is another one than that of the newest checkpoint.
    """

    def list_rows() -> list[dict[str, Any]]:
        return read_rows(run / "metrics.jsonl") if (run / "metrics.jsonl").exists() else []

    child = fork(
        lambda: resume(run) if (run / SAVED_NAME).exists() else train_quietly(staged(run, **settings))
    )
    # Half of the moments are right after a row, the others anywhere: in a forward, in a checkpoint.
    until, deadline = len(list_rows()) + generator.choice((0, 1, 1, 2, 3)), time.monotonic() + 300
    while len(list_rows()) < until and time.monotonic() < deadline:
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "the run ended: give it more steps"
        time.sleep(0.001)
    time.sleep(generator.choice((0.0, 0.2 * generator.random())))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if not steps_of(run) or not list_rows():
        return False
    samplers = json.loads((checkpoint.find(run) / checkpoint.SAMPLERS).read_text())
    return bool(list_rows()[-1]["curriculum/stage"] != samplers["curriculum"]["stage"])


@pytest.mark.launch
def test_a_curriculum_killed_at_twenty_moments_is_the_run_that_was_not(tmp_path: Path) -> None:
    """Checkpoints come every third step, so some kills fall between a promotion and its checkpoint.

    A fourth stage and a demotion make changes of the stage frequent.
    """
    names = ("first", "random", "mcts:2", "random")
    stages = [
        {"name": f"{i}", "opponent": name, "threshold": 0.5, "min_episodes": 6}
        for i, name in enumerate(names)
    ]
    settings = {
        "curriculum__stages": json.dumps(stages), "curriculum__demote": "0.45",
        "curriculum__progression_window": "6", "ppo__num_train_steps": "90", "run__checkpoint_every": "3",
        "ppo__ppo_epochs": "1",
    }  # fmt: skip
    whole, killed = train_quietly(staged(tmp_path / "whole", **settings)), tmp_path / "killed"
    generator = random.Random(7)
    assert any([kill_at_random(killed, settings, generator) for _ in range(20)])
    resume(killed)
    assert_same_run(killed, whole)
    changes = json.loads((checkpoint.find(whole) / checkpoint.SAMPLERS).read_text())["curriculum"]["events"]
    assert {event["event"] for event in changes} == {"promoted", "demoted"}
