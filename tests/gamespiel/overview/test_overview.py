"""Runs beside one another: their list, and what differs between two."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from filelock import FileLock

from gamespiel.cli import main
from gamespiel.overview.comparing import differing_keys, find_parting
from gamespiel.overview.curves import draw_groups, group_seeds, read_curve
from gamespiel.overview.listing import describe_run
from gamespiel.overview.reading import find_runs, is_locked, read_run
from tests.gamespiel.runs import small, train_quietly


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs that differ in the learning rate, and one that was stopped."""
    folder = tmp_path_factory.mktemp("runs")
    more = {"ppo__num_train_steps": "3", "run__eval_steps": "2", "run__eval_episodes": "2"}
    train_quietly(small(folder / "a", **more))
    train_quietly(small(folder / "b", **more, ppo__learning_rate="0.001", run__seed="4"))
    shutil.copytree(folder / "a", folder / "stopped")
    summary = folder / "stopped" / "summary.json"
    summary.write_text(json.dumps({"before": {}}))
    rows = (folder / "stopped" / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "stopped" / "metrics.jsonl").write_text("".join(rows[:2]))
    for name, seconds in (("a", 300), ("b", 200), ("stopped", 100)):
        for file in ("metrics.jsonl", "config.yaml"):
            os.utime(folder / name / file, (10**9 + seconds, 10**9 + seconds))
    return folder


def test_runs_are_listed_the_newest_first(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, broken = find_runs([runs])
    assert [run.folder.name for run in found] == ["a", "b", "stopped"] and broken == []
    lines = {run.folder.name: describe_run(run) for run in found}
    assert [(line["state"], line["step"], line["steps"]) for line in lines.values()] == [
        ("finished", 3, 3), ("finished", 3, 3), ("stopped", 2, 3),
    ]  # fmt: skip
    assert lines["a"]["tasks"] == "kuhn_poker"
    best = json.loads((runs / "a" / "checkpoints" / "best.json").read_text())
    assert lines["a"]["best"] == best["value"]
    assert main(["runs", str(runs), "--json"]) == 0
    assert [line["run"] for line in json.loads(capsys.readouterr().out)] == [
        str(runs / name) for name in ("a", "b", "stopped")
    ]
    assert main(["runs", str(runs / "b"), str(runs / "a"), "--json"]) == 0
    assert [line["run"] for line in json.loads(capsys.readouterr().out)] == [str(runs / "a"), str(runs / "b")]


def test_a_broken_run_is_named_beside_the_others(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs / "a", tmp_path / "good")
    shutil.copytree(runs / "a", tmp_path / "bad")
    (tmp_path / "bad" / "summary.json").write_text("{")
    found, broken = find_runs([tmp_path])
    assert [run.folder.name for run in found] == ["good"]
    assert len(broken) == 1 and "summary.json' cannot be read" in broken[0]
    assert main(["runs", str(tmp_path)]) == 0 and "cannot be read: " in capsys.readouterr().out
    assert main(["runs", str(tmp_path / "none")]) == 2
    assert "allowed: a run, or a folder of runs" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert main(["runs", str(tmp_path / "empty")]) == 0 and "there are no runs" in capsys.readouterr().out


def test_a_lock_is_seen_without_taking_it(runs: Path) -> None:
    lock = runs / "a" / ".lock"
    assert not is_locked(lock) and read_run(runs / "a").state == "finished"
    with FileLock(lock):
        assert is_locked(lock) and read_run(runs / "a").state == "training"
    assert not is_locked(lock) and not is_locked(runs / "none")


def test_two_runs_part_where_their_metrics_differ(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = read_run(runs / "a"), read_run(runs / "b")
    assert {key for key, *_ in differing_keys(first, second)} == {"ppo.learning_rate", "run.seed"}
    parting = find_parting(first, second)
    assert parting is not None and parting.step == 1
    assert find_parting(first, read_run(runs / "stopped")) is None  # of the steps that both have
    other = tmp_path / "other"
    shutil.copytree(runs / "a", other)
    lines = (other / "metrics.jsonl").read_text().splitlines()
    changed = json.loads(lines[1]) | {"rollout/reward": 0.123, "time/step": -1.0}
    (other / "metrics.jsonl").write_text("\n".join([lines[0], json.dumps(changed), lines[2]]) + "\n")
    parting = find_parting(first, read_run(other))
    assert parting is not None and parting.step == 2
    assert parting.metrics == {"rollout/reward": (json.loads(lines[1])["rollout/reward"], 0.123)}
    assert main(["compare", str(runs / "a"), str(other)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "the configurations are equal, but for the folders" in said
    assert "the runs part in step 2:" in said and "rollout/reward" in said
    assert main(["compare", str(runs / "a"), str(runs / "stopped")]) == 0
    assert "the metrics of all 2 common steps are equal" in " ".join(capsys.readouterr().out.split())
    assert main(["compare", str(runs / "a"), str(tmp_path / "no")]) == 2


def test_curves_of_one_run(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = read_run(runs / "a")
    assert list(read_curve(run, "rollout/reward")) == [1, 2, 3]
    assert list(read_curve(run, "eval/score")) == [0, 2]  # logged with the steps that follow
    figure = draw_groups(group_seeds([run]))
    by_title = {axes.get_title(loc="left"): axes for axes in figure.axes}
    (line,) = by_title["reward"].lines
    assert list(line.get_xdata()) == [1, 2, 3]
    assert line.get_ydata()[0] == run.rows[0]["rollout/reward"]
    assert len(by_title["held-out score"].collections) == 1  # the interval
    assert main(["plot", str(runs / "a"), "--output", str(tmp_path / "new" / "c.png")]) == 0
    assert (tmp_path / "new" / "c.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "new" / "c.svg").read_text()[:600]
    assert capsys.readouterr().out.count("written to ") == 2
    shutil.copytree(runs / "a", tmp_path / "no step")
    (tmp_path / "no step" / "metrics.jsonl").write_text("")
    assert main(["plot", str(tmp_path / "no step")]) == 2
    assert "none of the runs has made a step" in capsys.readouterr().err


def test_seeds_are_a_band_and_other_keys_another_curve(runs: Path, tmp_path: Path) -> None:
    other = tmp_path / "seed"
    shutil.copytree(runs / "a", other)
    text = (other / "config.yaml").read_text()
    (other / "config.yaml").write_text(text.replace("  seed: 3\n", "  seed: 9\n"))
    lines = [json.loads(line) for line in (other / "metrics.jsonl").read_text().splitlines()]
    lines[1]["rollout/reward"] += 0.5
    (other / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    first, again, changed = (read_run(place) for place in (runs / "a", other, runs / "b"))
    groups = group_seeds([first, again, changed])
    assert [group.label for group in groups] == ["a, 2 seeds", "learning_rate 0.001"]
    reward = draw_groups(groups).axes[0]
    assert [len(line.get_xdata()) for line in reward.lines] == [3, 3]
    assert len(reward.collections) == 2  # the band over two seeds, and the interval of a run alone
    mean = reward.lines[0].get_ydata()[1]
    assert mean == pytest.approx(first.rows[1]["rollout/reward"] + 0.25)
