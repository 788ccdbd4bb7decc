"""Evaluations while training: what they leave out and change, the best checkpoint and the early end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamespiel.agents.runs import catalog
from gamespiel.agents.runs.catalog import Best, CheckpointError
from gamespiel.agents.sampling import noise
from gamespiel.agents.sampling.noise import Purpose, episode_seeds
from gamespiel.cli import main
from gamespiel.config import Config, InvalidValueError, resolve
from gamespiel.environments.curriculum import subtract_ranges
from gamespiel.environments.held_out import evaluation_configs, find_taken_seeds, hold_out_tasks
from gamespiel.environments.making import make_envs
from gamespiel.kinds import kind_of
from gamespiel.kinds.traces.kind import trace_seeds
from gamespiel.training import callbacks, measures
from task_gym.errors import OpponentError
from tests.gamespiel.runs import (
    SMALL,
    assert_same_run,
    options_of,
    rows_of,
    small,
    steps_of,
    train_aloud,
    train_quietly,
)

EVALUATED = {
    "run__eval_steps": "2",
    "run__eval_episodes": "4",
    "run__eval_games": "0",
    "run__exact_every": "0",
}


def evaluated(run: Path, **more: str) -> Config:
    return small(run, **{**EVALUATED, "ppo__num_train_steps": "6", **more})


Ids = st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda pair: (min(pair), max(pair)))


@given(st.lists(Ids, max_size=4), st.lists(Ids, max_size=4))
def test_ranges_without_others(ranges: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    def ids(pairs: list[tuple[int, int]]) -> set[int]:
        return {one for first, last in pairs for one in range(first, last + 1)}

    left = subtract_ranges(ranges, others)
    assert all(first <= last for first, last in left)
    assert ids(left) == ids(ranges) - ids(others)


def test_seeds_of_training_are_left_out() -> None:
    overrides = {"ppo.num_train_steps": "3", "ppo.batch_size": "5", "run.seed": "7"}
    config = resolve("tiny", overrides=overrides.items())
    drawn = [episode_seeds(7, step, 5) for step in range(3)]
    assert len({seed for seeds in drawn for seed in seeds}) == 15
    asked = [1, *drawn[2], 2, *drawn[0]]
    # Later steps may come first: an evaluation of an earlier checkpoint finds what was drawn by then.
    for step, expected in ((3, {*drawn[0], *drawn[2]}), (2, {*drawn[0]}), (1, {*drawn[0]}), (0, set())):
        assert find_taken_seeds(config, step, asked) == expected
    traces = trace_seeds(7, 6)
    assert traces == episode_seeds(7, 0, 6, Purpose.EVALUATION_TASKS)
    # Without the second and the fifth, the next two come in.
    assert trace_seeds(7, 6, {traces[1], traces[4]}.intersection) == [
        seed for seed in trace_seeds(7, 8) if seed not in (traces[1], traces[4])
    ]


@pytest.mark.trains
@pytest.mark.sample
def test_no_seed_is_both_trained_on_and_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first seed that an evaluation would draw is made one of training's; checkpoints are by minutes."""
    often = {"run__checkpoint_every": "100", "run__checkpoint_minutes": "0.000001"}
    config = evaluated(tmp_path / "run", ppo__num_train_steps="2", **often)
    first = kind_of(config.env).seeds(make_envs(config.env, 1), 4, config.run.seed)[0]
    played: list[int] = []
    usual = measures.play_policy

    def play(*arguments: Any, **named: Any) -> Any:
        episodes = usual(*arguments, **named)
        played.extend(episode.seed for episode in episodes)
        return episodes

    monkeypatch.setattr(measures, "play_policy", play)
    drawn = noise.TrainingSeeds.find_drawn
    monkeypatch.setattr(noise.TrainingSeeds, "find_drawn", lambda seeds, step: drawn(seeds, step) | {first})
    assert steps_of(train_quietly(config)) == [0, 1, 2]
    trained_on = [episode_seeds(config.run.seed, step, config.ppo.batch_size) for step in range(2)]
    assert len(played) == 8  # four per seat, before the first step
    assert not set(played) & {first}.union(*trained_on)


def test_tasks_can_be_held_out() -> None:
    def held(*overrides: tuple[str, Any]) -> Any:
        config = resolve("tiny", overrides=[("run.eval_task_ids", "[[5, 9], 20]"), *overrides])
        return hold_out_tasks(config).env

    assert held(("env.task_ids", "[3, [7, 12], 20]")).task_ids == ((3, 3), (10, 12))
    # Index 0 has the ids 0 to 99,999,999.
    env = held(("env.allowed_game_indices", "[0]"))
    assert env.task_ids == ((0, 4), (10, 19), (21, 99_999_999)) and env.allowed_game_indices == ()
    assert held(("env.game", "kuhn_poker")).game == "kuhn_poker"
    with pytest.raises(InvalidValueError, match=r"holds out all tasks of the env section"):
        held(("env.task_ids", "[[6, 8]]"))
    traces = resolve("tiny-trace", overrides=[("run.eval_task_ids", "[[0, 99]]"), ("env.task_ids", "[]")])
    assert hold_out_tasks(traces).env.task_ids == ((100, 10**11 - 1),)
    # Nor do stages draw what is held out.
    stages = [{"name": "a", "task_id_range": [0, 9]}, {"name": "b", "task_ids": [20, 30]}, {"name": "c"}]
    overrides = [
        ("env.task_id", "null"), ("curriculum.stages", json.dumps(stages)), ("env.task_ids", "[[0, 99]]"),
    ]  # fmt: skip
    config = hold_out_tasks(resolve("tiny", overrides=[*overrides, ("run.eval_task_ids", "[[4, 5], 30]")]))
    assert [stage.task_ids for stage in config.curriculum.stages] == [((0, 3), (6, 9)), ((20, 20),), ()]
    assert config.curriculum.stages[0].task_id_range is None
    with pytest.raises(InvalidValueError, match=r"holds out all tasks of the stage 'b'"):
        hold_out_tasks(resolve("tiny", overrides=[*overrides, ("run.eval_task_ids", "[20, 30]")]))


def test_what_evaluations_play() -> None:
    overrides = [("run.eval_opponents", '["first", "mcts:2"]'), ("run.eval_task_ids", "[600000000]")]
    named = evaluation_configs(resolve("tiny", overrides=overrides))
    assert [name for name, _ in named] == ["first", "mcts:2"]
    envs: list[Any] = [settings.env for _, settings in named]
    assert [env.opponent for env in envs] == ["first", "mcts:2"]
    assert [(env.task_id, env.task_ids) for env in envs] == [(None, ((600_000_000, 600_000_000),))] * 2
    ((_, settings),) = evaluation_configs(resolve("tiny-selfplay"))
    assert settings.env.opponent == "random"  # which the policy in training is not
    with pytest.raises(OpponentError, match=r"did you mean 'first'"):
        evaluation_configs(resolve("tiny", overrides=[("run.eval_opponents", '["frist"]')]))
    with pytest.raises(InvalidValueError, match=r"names first, and traces have none"):
        evaluation_configs(resolve("tiny-trace", overrides=[("run.eval_opponents", '["first"]')]))


@pytest.mark.trains
@pytest.mark.sample
def test_evaluations_change_nothing_but_their_own_metrics(tmp_path: Path) -> None:
    short = {"ppo__num_train_steps": "4"}
    plain = train_quietly(evaluated(tmp_path / "plain", **short, run__eval_steps="null"))
    more = short | {"run__eval_opponents": '["first", "random"]', "run__keep_checkpoints": "1"}
    run, said = train_aloud(evaluated(tmp_path / "run", **more))
    rows = rows_of(run)
    measured = [row["step"] for row in rows if "eval/score" in row]
    assert measured == [1, 3]  # before these steps, so after 0 and 2
    for row in rows:
        if row["step"] in measured:
            by_opponent = [row["eval/score/first"], row["eval/score/random"]]
            assert row["eval/score"] == pytest.approx(sum(by_opponent) / 2)
            assert row["eval/episodes"] == 16  # four per seat and opponent
    without = [
        {key: row[key] for key in row if not key.startswith("eval/")} for row in (*rows, *rows_of(plain))
    ]
    assert without[:4] == without[4:]
    best = json.loads((run / "checkpoints" / "best.json").read_text())
    assert best["metric"] == "eval/score"
    assert catalog.find(f"{run}@best") == catalog.find(f"{run}@{best['step']}")
    assert steps_of(run) == sorted({best["step"], 4})  # the newest one, and the best
    assert "run.eval_steps: evaluations while training hold nothing out: the game is so small" in said
    assert "held_out 0." in said


@pytest.mark.trains
def test_a_limit_of_time_ends_an_evaluation_between_blocks(tmp_path: Path) -> None:
    more = {"run__eval_episodes": "50", "run__eval_seconds": "0.000001", "ppo__num_train_steps": "1"}
    (row,) = rows_of(train_quietly(evaluated(tmp_path / "run", **more)))
    assert row["eval/episodes"] == 16  # one block of the hundred
    more = {"run__eval_episodes": "20", "ppo__num_train_steps": "1"}
    whole = train_quietly(evaluated(tmp_path / "whole", run__eval_seconds="1000", **more))
    unlimited = train_quietly(evaluated(tmp_path / "all", **more))
    # Blocks have the noise of their places among all.
    assert rows_of(whole) == rows_of(unlimited) and rows_of(whole)[0]["eval/episodes"] == 40


@pytest.mark.trains
@pytest.mark.sample
def test_the_best_is_kept_and_patience_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = [0.5, 0.7, 0.6, 0.7, 0.9]
    monkeypatch.setattr(callbacks, "measure_held_out", lambda *arguments: {"eval/score": scores.pop(0)})
    more = {"run__early_stopping_patience": "2", "run__keep_checkpoints": "1", "ppo__num_train_steps": "20"}
    run, said = train_aloud(evaluated(tmp_path / "run", **more))
    # After 0: 0.5, 2: 0.7, 4: 0.6, 6: 0.7, which is not better: the second without a better one.
    assert [row["step"] for row in rows_of(run)] == [1, 2, 3, 4, 5, 6]
    assert steps_of(run) == [2, 6]
    assert json.loads((run / "checkpoints" / "best.json").read_text())["value"] == 0.7
    assert "ended after step 6 of 20: " in said and "after step 2, of score 0.700" in said


def test_the_best_of_rows() -> None:
    rows: list[dict[str, Any]] = [
        {"step": 1, "eval/score": 0.5}, {"step": 2}, {"step": 3, "eval/score": 0.8},
        {"step": 5, "eval/score": 0.7}, {"step": 6, "eval/score": None}, {"step": 7, "eval/score": 0.9},
    ]  # fmt: skip
    best = Best.find_best(rows, "eval/score", 6)  # that after step 6 is made again
    assert (best.step, best.value, best.since) == (2, 0.8, 1)
    assert not best.add(6, 0.8) and best.since == 2
    assert best.add(8, 0.81) and (best.step, best.since) == (8, 0)


@pytest.mark.trains
def test_going_back_moves_later_checkpoints_aside(tmp_path: Path) -> None:
    whole = train_quietly(evaluated(tmp_path / "whole"))
    run = train_quietly(evaluated(tmp_path / "run"))
    rows = (run / "metrics.jsonl").read_bytes()
    _, said = train_aloud(evaluated(run), f"{run}@3")
    aside = run / "checkpoints" / "left-at-000003"
    assert f"going back to step 3: the later checkpoints and metrics are in {aside}" in said
    assert sorted(path.name for path in aside.glob("step-*")) == ["step-000004", "step-000005", "step-000006"]
    assert (aside / "metrics.jsonl").read_bytes() == rows
    assert_same_run(run, whole)
    best = [json.loads((each / "checkpoints" / "best.json").read_text()) for each in (run, whole)]
    assert best[0] == best[1]


@pytest.mark.trains
@pytest.mark.sample
def test_places_that_name_no_checkpoint(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert catalog.find(f"{finished}@1").name == "step-000001"
    with pytest.raises(CheckpointError, match=r"@70' was given, allowed: .*run@0, .*run@12$"):
        catalog.find(f"{finished}@70")
    with pytest.raises(CheckpointError, match=r"a run with run.eval_steps has a best one"):
        catalog.find(f"{finished}@best")
    evaluation = ["eval", "--num_episodes", "1", "--output", str(tmp_path / "e.json"), "--checkpoint"]
    assert main([*evaluation, f"{finished}@1"]) == 0
    assert main([*evaluation, f"{finished}@50"]) == 2
    assert "allowed: " in capsys.readouterr().err
    odd = tmp_path / "a@7"
    odd.mkdir()
    assert catalog.read_place(odd) == odd  # a folder's own name


@pytest.mark.trains
@pytest.mark.sample
def test_resume_auto_begins_goes_on_and_goes_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run"
    # The same command each time, as a scheduler repeats it.
    keys = {**SMALL, "ppo.num_train_steps": "3", "run.eval_games": "0", "run.exact_every": "0"}
    command = ["train", "--preset", "tiny", "--output_dir", str(run), "--resume", "auto"]
    command += options_of(keys)
    assert main(command) == 0
    assert f"--resume auto: there is no run in {run}; a new one begins" in capsys.readouterr().out
    rows = (run / "metrics.jsonl").read_bytes()
    assert main(command) == 0 and (run / "metrics.jsonl").read_bytes() == rows
    (catalog.find(run) / "optimizer.safetensors").write_bytes(b"torn")
    (run / "metrics.jsonl").write_bytes(rows.replace(b'"step": 1,', b'"step": 0,', 1))
    capsys.readouterr()
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "--resume auto: step-000003 is not whole; going back to step-000002" in said
    assert f"{run / 'metrics.jsonl'} lacks the steps 1" in said
    assert steps_of(run) == [0, 1, 2, 3]
    assert main(["train", "--preset", "tiny", "--resume", "auto"]) == 2
    assert "--resume auto needs --output_dir" in capsys.readouterr().err
    assert main([*command, "--ppo.cliprange", "0.3"]) == 2
    assert "a resumed run keeps ppo.cliprange (0.2, not 0.3)" in capsys.readouterr().err
