"""A curriculum and failure replay in training: what is played, what is saved, and the errors before it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gamespiel import assembly
from gamespiel.agents.runs import checkpoint
from gamespiel.agents.runs.loggers import read_rows
from gamespiel.agents.starts import Starts
from gamespiel.config import Config, ConfigError, InvalidValueError, from_dict, notices, resolve
from gamespiel.environments import making as environments
from gamespiel.environments.curriculum import add_stage_tasks, make_starts
from gamespiel.measure.evaluation import evaluate
from gamespiel.measure.options import EvalOptions
from task_gym.errors import ArgumentError, GameError, OpponentError, TaskGymError
from tests.consoles import quiet
from tests.gamespiel import runs
from tests.gamespiel.runs import rows_of, small, staged, train_quietly

FILES = Path(__file__).parents[1] / "data" / "configs"
THREE = FILES / "curriculum.json"
STEPS = 7
SHORT = {"ppo__num_train_steps": str(STEPS), "run__exact_every": "0"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted run, which shows the changes of its stages. Tests must not change it."""
    run, text = runs.train_aloud(staged(tmp_path_factory.mktemp("staged") / "run", **SHORT))
    assert text.count("promoted from 'easy' to 'mixed' after ") == 1
    assert "stage hard  to_next_stage 1.00  replays " in text
    return run


def samplers(run: Path, step: int) -> dict[str, Any]:
    path = run / "checkpoints" / f"step-{step:06d}" / checkpoint.SAMPLERS
    states: dict[str, Any] = json.loads(path.read_text())
    return states


def starts_of(config: Config) -> Starts:
    starts = make_starts(config)
    assert starts is not None
    return starts


@pytest.mark.trains
@pytest.mark.sample
def test_stages_follow_one_another_and_rows_say_so(run: Path) -> None:
    rows = read_rows(run / "metrics.jsonl")
    stages = [row["curriculum/stage"] for row in rows]
    assert stages == sorted(stages) and set(stages) >= {1, 2}
    assert all(row["curriculum/name"] == ("easy", "mixed", "hard")[row["curriculum/stage"]] for row in rows)
    assert all(0 <= row["curriculum/progress"] <= 1 for row in rows)
    # Shares of six episodes, none in the first step; the store holds five failures at most.
    assert rows[0]["replay/share"] == 0 and any(row["replay/share"] > 0 for row in rows)
    assert all(round(6 * row["replay/share"], 9).is_integer() and row["replay/size"] <= 5 for row in rows)
    assert all(row["rollout/episodes"] == 6 for row in rows)
    state = samplers(run, STEPS)
    assert [event["to"] for event in state["curriculum"]["events"]] == ["mixed", "hard"]
    replays = sum(round(6 * row["replay/share"]) for row in rows)
    assert state["replay"]["counts"]["replays"] == replays
    assert state["replay"]["counts"]["episodes"] == 6 * STEPS
    assert state["curriculum"]["episodes"] == 6 * STEPS - replays  # replays leave the stage as it is
    # The first stage plays only "first".
    first = next(row["step"] for row in rows if row["curriculum/stage"] > 0)
    for row in rows:
        against = {key.split("/")[2] for key in row if key.startswith("rollout/against/")}
        assert against == {"first"} if row["step"] <= first else against <= {"first", "random"}
        assert sum(row[f"rollout/against/{name}/episodes"] for name in against) == 6
    assert any("rollout/against/random/episodes" in row for row in rows)


@pytest.mark.trains
@pytest.mark.sample
def test_the_number_of_environments_changes_nothing(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six episodes per step at once, or in waves: the same starts and outcomes, and so the same stages."""
    monkeypatch.setattr(environments, "ENVIRONMENTS_AT_ONCE", 4)
    other = train_quietly(staged(tmp_path / "run", run__eval_games="0", **SHORT))
    for step in range(STEPS + 1):
        assert samplers(other, step) == samplers(run, step)
    rows = [
        {key: row[key] for key in row if key.startswith(("curriculum/", "replay/"))} for row in rows_of(run)
    ]
    assert rows == [{key: row[key] for key in keys} for row, keys in zip(rows_of(other), rows, strict=True)]


@pytest.mark.trains
@pytest.mark.sample
def test_it_resumes_from_both_sides_of_a_promotion(run: Path, tmp_path: Path) -> None:
    stages = [0, *(row["curriculum/stage"] for row in rows_of(run))]
    promoted = [step for step in range(1, STEPS + 1) if stages[step] != stages[step - 1]]
    assert len(promoted) == 2
    for step in (promoted[0] - 1, promoted[1]):
        copy = tmp_path / f"from-{step}"
        runs.assert_repeated(run, copy, step)
    (checkpoint.find(copy) / checkpoint.SAMPLERS).unlink()
    with pytest.raises(checkpoint.CheckpointError, match=r"samplers\.json is missing"):
        runs.resume(copy)


# -- tasks ---------------------------------------------------------------------------------------------------


def test_the_env_section_gets_the_stages_tasks() -> None:
    config = resolve("tiny", [THREE])  # whose stages take the place of the preset's task
    ranges = ((0, 999_999_999), (1_000_000_000, 1_999_999_999), (2_000_000_000, 2_999_999_999))
    assert config.env.task_id is None and config.env.task_ids == ()
    saved = add_stage_tasks(config)
    assert saved.env.task_ids == ranges and not saved.env.rules
    assert add_stage_tasks(saved) == saved  # a resumed run's
    # A choice of tasks of the user's own must have those of all stages; ranges may adjoin.
    narrow = resolve(files=[THREE], overrides=[("env.task_ids", "[[0, 1999999999]]")])
    with pytest.raises(InvalidValueError, match=r"stage 'hard' draws 2000000000 … 2999999999, which the env"):
        add_stage_tasks(narrow)
    wide = resolve(files=[THREE], overrides=[("env.task_ids", "[[0, 999999999], [1000000000, 4000000000]]")])
    assert add_stage_tasks(wide) == wide


def test_games_by_index_take_the_place_of_the_stages_tasks() -> None:
    """Index 24 is 2 modulo 22: leduc_poker. Stages then differ only in opponent and threshold."""
    config = resolve(files=[THREE], overrides=[("env.allowed_game_indices", "1,24")])
    assert add_stage_tasks(config) == config
    assert "env.allowed_game_indices replaces the task ids of curriculum.stages." in notices(config)
    starts = starts_of(config)
    assert {start.task_id for start in starts.draw(0, range(20))} == {None}
    env = environments.make_one_env(config.env)
    games = {
        env.reset(seed=start.seed, options=start.options)[1]["game"] for start in starts.draw(0, range(20))
    }
    assert games == {"liars_dice", "leduc_poker"}


@pytest.mark.trains
@pytest.mark.sample
def test_levels_of_traces_are_stages() -> None:
    """A level beside task ids is of all traces. One score above 0 ends the first stage."""
    stages = [
        {"name": "some", "task_ids": [1, 2, 3], "threshold": 0.01, "min_episodes": 1},
        {"name": "level 2", "level": 2},
    ]
    section = {"stages": stages, "progression_window": 1, "success_scores": {"1": 0, "2": 0, "3": 0}}
    config = from_dict({"env_type": "trace", "failure_replay_prob": 0, **section})
    assert add_stage_tasks(config) == config
    env, starts = environments.make_one_env(config.env), starts_of(config)
    for step in range(2):
        (start,) = starts.draw(step, [0])
        info = env.reset(seed=start.seed, options=start.options)[1]
        assert info["task_id"] in (1, 2, 3) if step == 0 else info["level"] == 2
        info = env.step(info["legal_actions"][0])[4]
        starts.record([start], [info | {"score": 0.1, "success": False}])
    assert starts.metrics()["curriculum/name"] == "level 2"


GROUPS = [{"name": "one", "opponent": "first"}, {"name": "other", "opponent": "random"}]
TWO = [{"name": "a", "threshold": 0.99}, {"name": "b"}]


@pytest.mark.parametrize(
    ("keys", "error", "message"),
    [
        ({"stages": [{"name": "a", "opponent": "mctz"}]}, OpponentError, "'mctz' was .*did you mean 'mcts'"),
        ({"stages": [{"name": "a", "opponent": {"open": 1}}]}, InvalidValueError, "'open' leaves every seat"),
        ({"stages": [{"name": "a", "level": 3}]}, InvalidValueError, "level = 3 was given"),
        (
            {"env_type": "trace", "level": 1, "stages": [{"name": "b", "level": 3}]},
            InvalidValueError,
            "level = 3 .*, which env.level = 1",
        ),
        ({"stages": TWO, "promote": "confidence"}, ArgumentError, "'a': threshold 0.99 .* up to 0.963"),
        ({"stages": GROUPS, "success_scores": {"leduc_pokr": 0.3}}, GameError, "did you mean 'leduc_poker'"),
        ({"stages": [{"name": "a", "opponent": {"self": 1}}]}, ConfigError, r"stages\[0\]\.opponent: 'self'"),
        ({"stages": TWO, "sampler": "uniform"}, ConfigError, r"stages\[0\] has a threshold .*'uniform'"),
    ],
)
def test_errors_before_a_run(keys: dict[str, Any], error: type[TaskGymError], message: str) -> None:
    with pytest.raises(error, match=message):
        make_starts(from_dict(keys, base=resolve("tiny")))


def test_stages_replay_failures_unless_told_otherwise() -> None:
    stages = {"game": "kuhn_poker", "stages": [{"name": "a"}]}
    for keys, share in (({}, 0.0), (stages, 0.3), (stages | {"failure_replay_prob": 0}, 0.0)):
        starts = make_starts(from_dict(keys))
        assert from_dict(keys).curriculum.replays == share
        assert (starts is not None and starts.failures is not None) == (share > 0)


def test_a_stages_opponent_that_waits_is_waited_for_in_threads(tmp_path: Path) -> None:
    stages = [{"name": "easy", "opponent": "first"}, {"name": "hard", "opponent": {"first": 1, "URL": 1}}]
    for opponent, waits in (("openai:m@http://127.0.0.1:9/v1", True), ("random", False)):
        text = json.dumps(stages).replace("URL", opponent)
        model = assembly.make_algorithm(staged(tmp_path, curriculum__stages=text))
        assert model.env is not None and model.env.waits == waits  # type: ignore[attr-defined]


def test_uniform_takes_the_stages_as_groups() -> None:
    starts = starts_of(from_dict({"stages": GROUPS, "sampler": "uniform"}, base=resolve("tiny")))
    assert {start.opponent for start in starts.draw(0, range(40))} == {"first", "random"}


# -- runs ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("here")
def test_an_evaluation_reports_each_opponent() -> None:
    mixed = from_dict({"game": "kuhn_poker", "opponent": {"random": 0.5, "first": 0.5}})
    sampled = evaluate(EvalOptions(mixed, agent="random", num_episodes=10), quiet())["sampled"]
    assert list(sampled) == ["against first", "against random", "seat 0", "seat 1", "all"]
    assert sampled["against first"]["episodes"] + sampled["against random"]["episodes"] == 20


@pytest.mark.trains
@pytest.mark.sample
def test_several_games_end_with_pairs(tmp_path: Path) -> None:
    """Twelve episodes of two games, before and after; a resumed run still knows how it began."""
    games = {"env__game": "null", "env__task_ids": "[200000000, 1500000000]", "run__eval_games": "6"}
    run = train_quietly(small(tmp_path / "run", **games, ppo__num_train_steps="1"))
    summary = json.loads((run / "summary.json").read_text())
    pairs, scores = summary["paired"], summary["scores_before"]
    assert list(pairs) == ["blackjack", "leduc_poker", "all"] and pairs["all"]["episodes"] == len(scores)
    for name, row in pairs.items():
        values = [score for game, score in scores if name in (game, "all")]
        assert row["before"] == pytest.approx(sum(values) / len(values)) and row["episodes"] == len(values)
        assert row["change"][0] == pytest.approx(row["after"] - row["before"])
    assert summary["after"]["score"] == pytest.approx(pairs["all"]["after"])
    runs.resume(run)
    assert json.loads((run / "summary.json").read_text()) == summary
