"""Reports of runs: what goes there, what a resumed run does, and that failures end nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from stable_baselines3.common.logger import Logger

from gamespiel.config import resolve
from gamespiel.training import reporting
from gamespiel.training.reporting import FAILURES, Report, ReportWriter, check_reports, describe_run
from task_gym.errors import MissingPackageError
from tests.gamespiel.runs import rows_of, small, train_quietly

SHORT = {"ppo__num_train_steps": "3", "run__eval_games": "0", "run__exact_every": "0"}


class RecordingReport:
    """A report that keeps its rows and texts, and fails in the calls with some numbers."""

    def __init__(self, failing: range = range(0)) -> None:
        self.rows: list[tuple[int, dict[str, Any]]] = []
        self.texts: list[tuple[int, str]] = []
        self.failing, self.calls, self.closed = failing, 0, 0

    def log(self, values: Any, step: int) -> None:
        self.calls += 1
        if self.calls in self.failing:
            raise OSError("no route to host")
        self.rows.append((step, dict(values)))

    def add_text(self, name: str, text: str, step: int) -> None:
        self.texts.append((step, f"{name}: {text}"))

    def close(self) -> None:
        self.closed += 1

    def make(self, first: int) -> Report:
        return Report(self.log, self.add_text, self.close)


def refuse(first: int) -> Report:
    raise RuntimeError("there is no API key")


def report_steps(make: Callable[[int], Report], steps: int) -> list[str]:
    """Returns the messages of a writer that reports so many steps."""
    said: list[str] = []
    writer = ReportWriter("wandb", make, lambda: "a game", said.append)
    logger = Logger(None, [writer])
    for step in range(1, steps + 1):
        logger.record("step", step)
        logger.record("a/b", step / 2)
        logger.record("name", "easy")
        logger.dump(step)
    writer.finish()
    return said


def test_rows_and_some_games_are_reported_and_failures_are_said() -> None:
    report = RecordingReport()
    assert report_steps(report.make, 26) == []
    assert report.rows[:2] == [(1, {"a/b": 0.5, "name": "easy"}), (2, {"a/b": 1.0, "name": "easy"})]
    assert report.texts == [(1, "game: a game"), (25, "game: a game")]
    assert (len(report.rows), report.closed) == (26, 1)
    failing = RecordingReport(failing=range(2, 4))
    assert report_steps(failing.make, 5) == ["report_to wandb: OSError: no route to host; the run goes on"]
    assert [step for step, _ in failing.rows] == [1, 4, 5]
    useless = RecordingReport(failing=range(2, 100))
    said = report_steps(useless.make, 20)
    assert len(said) == 2 and said[1].endswith("no route to host; it is no longer asked")
    assert useless.calls == 1 + FAILURES
    # One that cannot be made ends no run either.
    assert report_steps(refuse, 1) == ["report_to wandb: RuntimeError: there is no API key; the run goes on"]


def test_a_missing_library_is_named_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=r"run.report_to names wandb, .*'gamespiel\[wandb\]'"):
        train_quietly(small(tmp_path / "run", run__report_to='["none", "wandb"]'))
    assert not (tmp_path / "run").exists()
    check_reports(resolve("tiny", overrides=[("run.report_to", "none")]))


def test_what_is_told_of_a_run() -> None:
    told = describe_run(resolve("tiny"))
    assert told["ppo"]["gamma"] == 1.0 and told["versions"]["torch"]
    assert set(told["machine"]) == {"system", "python", "device", "cpus"}
    assert json.loads(json.dumps(told)) == told
    assert told["git"] == "" or len(told["git"].rstrip("+")) == 40


def resumed(run: Path, **more: str) -> Path:
    """A run of three steps, of which the third is made twice."""
    config = small(run, **{**SHORT, **more})
    train_quietly(config)
    train_quietly(config, resume=Path(f"{run}@2"))
    return run


def test_tensorboard(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = resumed(tmp_path / "run", run__report_to="tensorboard")
    events = EventAccumulator(str(run / "tensorboard"))
    events.Reload()
    rewards = {event.step: event.value for event in events.Scalars("rollout/reward")}
    assert rewards == pytest.approx({row["step"]: row["rollout/reward"] for row in rows_of(run)})
    assert len(events.Scalars("rollout/reward")) == 3  # what was resumed replaces what was there
    assert {"run/text_summary", "game/text_summary"} <= set(events.Tags()["tensors"])


def test_wandb_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    run = resumed(tmp_path / "run", run__report_to="wandb")
    parts = [path.name for path in (run / "wandb").glob("offline-run-*")]
    name = json.loads((run / "reports.json").read_text())["wandb"]
    assert len(parts) == 2 and all(part.endswith(name) for part in parts)  # one run, in two parts


def test_trackio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))  # read at the import
    trackio = pytest.importorskip("trackio")
    run = resumed(tmp_path / "run", run__report_to="trackio")
    name = json.loads((run / "reports.json").read_text())["trackio"]
    logs = trackio.SQLiteStorage.get_logs("gamespiel", name)
    rewards = {row["step"]: row["rollout/reward"] for row in logs if "rollout/reward" in row}
    assert rewards == pytest.approx({row["step"]: row["rollout/reward"] for row in rows_of(run)})
