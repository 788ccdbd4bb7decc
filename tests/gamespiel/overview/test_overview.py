"""Runs beside one another: their list, what differs between two, their curves and shares of success."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from gamespiel.cli import main
from gamespiel.config import Config
from gamespiel.overview.comparing import differing_keys, find_first_difference
from gamespiel.overview.plots import (
    Group,
    draw_groups,
    find_shares,
    group_seeds,
    read_curve,
    running_mean,
)
from gamespiel.overview.reading import Run, describe_run, find_runs, is_locked, read_run
from task_gym.stats import wilson
from tests.gamespiel.runs import small, train_quietly

pytestmark = [pytest.mark.trains, pytest.mark.sample]

Capsys = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, one of another learning rate and seed (by its files alone), and one that was stopped."""
    folder = tmp_path_factory.mktemp("runs")
    more = {"ppo__num_train_steps": "3", "run__eval_steps": "2", "run__eval_episodes": "2"}
    train_quietly(small(folder / "a", **more))
    shutil.copytree(folder / "a", folder / "b")
    config = (folder / "b" / "config.yaml").read_text().replace("  seed: 3\n", "  seed: 4\n")
    (folder / "b" / "config.yaml").write_text(re.sub("learning_rate: .*", "learning_rate: 0.001", config))
    add_reward(folder / "b", step=1, more=0.25)
    shutil.copytree(folder / "a", folder / "stopped")
    summary = folder / "stopped" / "summary.json"
    summary.write_text(json.dumps({"before": {}}))
    rows = (folder / "stopped" / "metrics.jsonl").read_text().splitlines(keepends=True)
    (folder / "stopped" / "metrics.jsonl").write_text("".join(rows[:2]))
    for name, seconds in (("a", 300), ("b", 200), ("stopped", 100)):
        for file in ("metrics.jsonl", "config.yaml"):
            os.utime(folder / name / file, (10**9 + seconds, 10**9 + seconds))
    return folder


def add_reward(run: Path, step: int, more: float) -> float:
    """Changes the reward of a step in a run's metrics; returns what it was."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    before: float = rows[step - 1]["rollout/reward"]
    rows[step - 1] |= {"rollout/reward": before + more, "time/step": -1.0}
    (run / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return before


def test_runs_are_listed_the_newest_first(runs: Path, capsys: Capsys) -> None:
    run_list, broken = find_runs([runs])
    assert [run.folder.name for run in run_list] == ["a", "b", "stopped"] and broken == []
    lines = {run.folder.name: describe_run(run) for run in run_list}
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


def test_a_broken_run_is_named_beside_the_others(runs: Path, tmp_path: Path, capsys: Capsys) -> None:
    shutil.copytree(runs / "a", tmp_path / "good")
    shutil.copytree(runs / "a", tmp_path / "bad")
    (tmp_path / "bad" / "summary.json").write_text("{")
    run_list, broken = find_runs([tmp_path])
    assert [run.folder.name for run in run_list] == ["good"]
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


def test_two_runs_part_where_their_metrics_differ(runs: Path, tmp_path: Path, capsys: Capsys) -> None:
    first, second = read_run(runs / "a"), read_run(runs / "b")
    assert {key for key, *_ in differing_keys(first, second)} == {"ppo.learning_rate", "run.seed"}
    parting = find_first_difference(first, second)
    assert parting is not None and parting[0] == 1
    assert find_first_difference(first, read_run(runs / "stopped")) is None  # of the steps that both have
    other = tmp_path / "other"
    shutil.copytree(runs / "a", other)
    before = add_reward(other, step=2, more=0.5)
    changed = ("rollout/reward", before, before + 0.5)
    assert find_first_difference(first, read_run(other)) == (2, [changed])
    assert main(["runs", "diff", str(runs / "a"), str(other)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "the configurations are equal, but for the folders" in said
    assert "the runs part in step 2:" in said and "rollout/reward" in said
    assert main(["runs", "diff", str(runs / "a"), str(runs / "stopped")]) == 0
    assert "the metrics of all 2 common steps are equal" in " ".join(capsys.readouterr().out.split())
    assert main(["runs", "diff", str(runs / "a"), str(tmp_path / "no")]) == 2
    assert main(["runs", "diff", str(runs / "a")]) == 2 and "takes two runs" in capsys.readouterr().err


def test_curves_of_one_run(runs: Path, tmp_path: Path, capsys: Capsys) -> None:
    run = read_run(runs / "a")
    assert list(read_curve(run, "rollout/reward")) == [1, 2, 3]
    assert list(read_curve(run, "eval/score")) == [0, 2]  # logged with the steps that follow
    figure = draw_groups(group_seeds([run]))
    by_title = {axes.get_title(loc="left"): axes for axes in figure.axes}
    (line,) = by_title["reward"].lines
    assert list(line.get_xdata()) == [1, 2, 3]
    assert line.get_ydata()[0] == run.rows[0]["rollout/reward"]
    assert len(by_title["held-out score"].collections) == 1  # the interval
    assert "exploitability" not in by_title  # which only self-play has
    assert all(axes.lines for axes in figure.axes if axes.axison)
    assert main(["plot", str(runs / "a"), "--output", str(tmp_path / "new" / "c.png")]) == 0
    assert (tmp_path / "new" / "c.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "new" / "c.svg").read_text()[:600]
    assert capsys.readouterr().out.count("written to ") == 2
    shutil.copytree(runs / "a", tmp_path / "no step")
    (tmp_path / "no step" / "metrics.jsonl").write_text("")
    assert main(["plot", str(tmp_path / "no step")]) == 2
    assert "none of the runs has made a step" in capsys.readouterr().err


def test_changes_of_the_stage_are_marked_in_each_panel() -> None:
    stages = ((0, "easy"), (1, "hard"), (1, "hard"), (2, "last"))
    rows = [
        {"step": step, "rollout/reward": 0.5, "curriculum/stage": stage, "curriculum/name": name}
        for step, (stage, name) in enumerate(stages, 1)
    ]
    (reward, _) = draw_groups([Group("a", [run_of(*rows)])]).axes
    assert [text.get_text() for text in reward.texts] == ["hard", "last"]
    assert [line.get_xdata()[0] for line in reward.lines[1:]] == [2, 4]


def test_the_exact_share_is_drawn_up_to_the_end(runs: Path) -> None:
    """Two steps were trained; the share after them is in the summary, and in no row of metrics."""
    run = read_run(runs / "a")
    rows = [{"step": 1, "eval/share": 0.5}, {"step": 2, "eval/share": 0.6}]
    ended = dataclasses.replace(
        run, rows=rows, summary={"step": 2, "after": {"share of best response": 0.75}}
    )
    assert read_curve(ended, "eval/share") == {0: 0.5, 1: 0.6, 2: 0.75}


def test_seeds_are_a_band_and_other_keys_another_curve(runs: Path, tmp_path: Path) -> None:
    other = tmp_path / "seed"
    shutil.copytree(runs / "a", other)
    text = (other / "config.yaml").read_text()
    (other / "config.yaml").write_text(text.replace("  seed: 3\n", "  seed: 9\n"))
    add_reward(other, step=2, more=0.5)
    first, again, changed = (read_run(place) for place in (runs / "a", other, runs / "b"))
    groups = group_seeds([first, again, changed])
    assert [group.label for group in groups] == ["a, 2 seeds", "learning_rate 0.001"]
    reward = draw_groups(groups).axes[0]
    assert [len(line.get_xdata()) for line in reward.lines] == [3, 3]
    assert len(reward.collections) == 2  # the band over two seeds, and the interval of a run alone
    mean = reward.lines[0].get_ydata()[1]
    assert mean == pytest.approx(first.rows[1]["rollout/reward"] + 0.25)


# -- success by game, opponent and stage, counted from a run's rows ----------------------------------------


def row(step: int, stage: str | None = None, **groups: tuple[int, int]) -> dict[str, Any]:
    """A row in which a game or an opponent has successes of episodes."""
    metrics: dict[str, Any] = {"step": step}
    for name, (won, played) in groups.items():
        kind, _, name = name.partition("_")
        metrics |= {
            f"rollout/{kind}/{name}/episodes": played,
            f"rollout/{kind}/{name}/success": won / played,
            f"rollout/{kind}/{name}/reward": 0.0,
        }
    games = [value for key, value in groups.items() if key.startswith("game_")]
    won, played = (sum(column) for column in zip(*games, strict=True))
    metrics |= {"rollout/episodes": played, "rollout/success": won / played, "rollout/reward": 0.0}
    return metrics if stage is None else metrics | {"curriculum/name": stage}


def run_of(*rows: dict[str, Any]) -> Run:
    return Run(Path("a"), Config(), list(rows), {}, 0.0)


def test_games_early_and_late() -> None:
    rows = [row(step, game_hex=(step, 12), game_go=(1, 3)) for step in range(1, 11)]
    ((title, early, late),) = find_shares([run_of(*rows)])
    assert title == "success by game"
    # A fifth of ten steps is two: 1 + 2 of 24 at first, 9 + 10 of 24 at last.
    assert early == {"go": wilson(2, 6), "hex": wilson(3, 24)}
    assert late["hex"] == wilson(19, 24)
    # Several seeds are counted together; there is one game only.
    rows = [row(1, game_hex=(1, 2), against_random=(1, 2), against_mcts=(0, 1))]
    ((title, _, late),) = find_shares([run_of(*rows), run_of(*rows)])
    assert (title, late) == ("success by opponent", {"random": wilson(2, 4), "mcts": wilson(0, 2)})
    # The steps of all stages count.
    stages = (("first", (0, 2)), ("first", (2, 2)), ("last", (1, 4)))
    rows = [row(step, stage, game_hex=won) for step, (stage, won) in enumerate(stages, 1)]
    ((_, early, late),) = find_shares([run_of(*rows)])
    assert early == {} and late == {"first": wilson(2, 4), "last": wilson(1, 4)}


# -- the learning curve ------------------------------------------------------------------------------------


def test_running_mean() -> None:
    """Window 2 over 1, 3, gap, 5, 7: 1, (1+3)/2, gap, 5 alone, (5+7)/2."""
    means = running_mean([1.0, 3.0, math.nan, 5.0, 7.0], 2)
    assert means[:2] == [1.0, 2.0] and math.isnan(means[2]) and means[3:] == [5.0, 6.0]
