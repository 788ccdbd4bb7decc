"""Training: a run's files, and the errors before it begins."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from matplotlib.image import imread
from safetensors.torch import load_file

from game_gym import exact
from gamespiel import __version__, runs, training
from gamespiel.agents.models.loading import ModelError
from gamespiel.agents.models.optimizer import read_moments
from gamespiel.agents.runs import checkpoint
from gamespiel.agents.runs.checkpoint import CheckpointError
from gamespiel.agents.runs.loggers import read_rows
from gamespiel.config import Config, InvalidValueError, load, resolve, saved_config
from gamespiel.evaluation import evaluate
from gamespiel.kinds.games.declaration import DECLARATION
from gamespiel.kinds.games.player import GamePlayer
from gamespiel.options import EvalOptions
from gamespiel.report.summary import SHARE
from gamespiel.training import train
from task_gym.errors import GameError, OpponentError, TaskGymError
from tests.gamespiel.runs import ROOT, STEPS, assert_same_run, quiet, rows_of, small, steps_of, train_quietly


def test_a_runs_folder(finished: Path) -> None:
    assert {path.name for path in finished.iterdir()} == {
        "config.yaml",
        "metrics.jsonl",
        "checkpoints",
        "learning_curve.png",
        "summary.json",
        "games.jsonl",
        ".lock",
    }
    assert load(finished / "config.yaml") == small(finished)
    assert steps_of(finished) == list(range(STEPS + 1))  # the one of step 0 is there from the start
    assert {path.name for path in checkpoint.find(finished).iterdir()} == {
        "adapter",
        "value_head.safetensors",
        "optimizer.safetensors",
        "manifest.json",
        "state.json",
    }
    picture = imread(finished / "learning_curve.png")
    assert picture.ndim == 3 and picture.std() > 0


def test_metrics_have_a_row_a_step(finished: Path) -> None:
    rows = rows_of(finished)
    assert [row["step"] for row in rows] == list(range(1, STEPS + 1))
    assert all(row["rollout/episodes"] == 6 and row["rollout/faults"] == 0 for row in rows)
    turns = [round(row["rollout/turns"] * 6) for row in rows]  # mean turns of six episodes
    assert [row["decisions"] for row in rows] == [sum(turns[: i + 1]) for i in range(STEPS)]
    # The preset's rate falls linearly: in step i (from 0), 12 - i twelfths remain.
    rate = resolve("tiny").ppo.learning_rate
    expected = [rate * (STEPS - i) / STEPS for i in range(STEPS)]
    assert [row["train/learning_rate"] for row in rows] == pytest.approx(expected)


def test_the_summary_has_before_and_after(finished: Path) -> None:
    summary = json.loads((finished / "summary.json").read_text())
    assert summary["step"] == STEPS and summary["decisions"] == rows_of(finished)[-1]["decisions"]
    measures = {
        "share of best response", "share, greedy", "exact return, seat 0", "exact return, seat 1",
        "score", "success rate", "return", "illegal rate", "legal mass",
    }  # fmt: skip
    assert set(summary["before"]) == set(summary["after"]) == measures
    for row in (summary["before"], summary["after"]):
        # Best responses to a uniform opponent are worth 1/2 and 5/12 (calculated in game_gym's tests).
        value = row["exact return, seat 0"] + row["exact return, seat 1"]
        assert row["share of best response"] == pytest.approx(value / (1 / 2 + 5 / 12))
        assert row["illegal rate"] == 0
        assert 0.9 < row["legal mass"] <= 1  # the embedded model was trained on the games' prompts
    # The untrained model imitates uniformly random play, and uniform against uniform is worth 0.
    assert abs(summary["before"]["share of best response"]) < 0.05
    assert summary["before"] != summary["after"]


def test_the_tables_and_what_to_do_next_are_printed(tmp_path: Path) -> None:
    console = quiet()
    lora = {"lora__lora_dropout": "0.1", "ppo__num_train_steps": "1", "run__eval_games": "0"}
    folder = train(small(tmp_path / "run", **lora), console=console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "lora.lora_dropout = 0.1 is applied nowhere" in text
    assert f"run folder: {folder}" in text
    assert "share of best response" in text and "success rate" not in text  # no games, no sampled measures
    assert text.splitlines()[-2:] == [
        f"gamespiel eval --checkpoint {folder} --exact  # evaluate, or --opponent mcts:100",
        f"gamespiel train --resume {folder} --ppo.num_train_steps 2  # go on; "
        f"play it: gamespiel.load_policy({str(folder)!r})",
    ]


def test_no_table_without_measures(tmp_path: Path) -> None:
    """Against ``mcts`` there are no exact values, and ``eval_games`` is 0."""
    console = quiet()
    nothing = {"env__opponent": "mcts:2", "ppo__num_train_steps": "1", "run__eval_games": "0"}
    train(small(tmp_path / "run", **nothing), console=console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "before" not in text and "decisions in" in text and "--exact" not in text


def test_checkpoints_are_written_when_asked_and_old_ones_removed(tmp_path: Path) -> None:
    every = {"run__checkpoint_every": "2", "run__keep_checkpoints": "2", "run__eval_games": "0"}
    run = train_quietly(small(tmp_path / "run", ppo__num_train_steps="5", **every))
    assert steps_of(run) == [4, 5]  # 0, 2, 4 and the last


def test_a_run_without_a_folder_gets_a_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = small(tmp_path, ppo__num_train_steps="1", run__eval_games="0")
    run = train_quietly(dataclasses.replace(config, run=dataclasses.replace(config.run, output_dir=None)))
    assert run.parent == Path("runs")
    assert run.name.startswith("kuhn_poker-") and run.name.endswith("-seed3")
    assert load(run / "config.yaml").run.output_dir == str(run)


def weights(checkpoint_folder: Path) -> dict[str, torch.Tensor]:
    adapters = load_file(checkpoint_folder / "adapter" / "adapter_model.safetensors")
    return adapters | load_file(checkpoint_folder / "value_head.safetensors")


def test_a_new_run_from_the_weights_of_another(finished: Path, tmp_path: Path) -> None:
    """The new run has another game and seed, starts at step 0, and has a new optimizer."""
    console = quiet()
    asked = small(
        tmp_path / "run", env__game="leduc_poker", env__max_turns="20", run__seed="5", run__eval_games="0",
        run__init_from=str(finished), ppo__num_train_steps="1",
    )  # fmt: skip
    run = train(asked, console=console)
    newest = checkpoint.find(finished)
    assert saved_config(run).run.init_from == str(newest)  # names the step: the other run may go on
    assert f"starting from the weights of {newest}" in console.file.getvalue()  # type: ignore[attr-defined]
    begun, taken = weights(run / "checkpoints" / "step-000000"), weights(newest)
    assert begun.keys() == taken.keys()
    assert [name for name in begun if not torch.equal(begun[name], taken[name])] == []
    state = json.loads((run / "checkpoints" / "step-000000" / "state.json").read_text())
    assert (state["step"], state["num_timesteps"]) == (0, 0)
    assert read_moments(run / "checkpoints" / "step-000000" / "optimizer.safetensors")["state"] == {}
    train_quietly(saved_config(run), resume=run)  # its configuration has init_from


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ({"run__init_from": "/no/run"}, "'/no/run' was given, which holds none"),
        ({"lora__r": "8"}, "does not fit"),
    ],
)
def test_weights_that_cannot_be_had(
    override: dict[str, str], message: str, finished: Path, tmp_path: Path
) -> None:
    asked = {"run__init_from": str(finished)} | override
    assert_refused(small(tmp_path / "run", **asked), CheckpointError, message)


def assert_refused(config: Config, error: type[TaskGymError], message: str) -> None:
    folder = Path(str(config.run.output_dir))
    with pytest.raises(error, match=message):
        train_quietly(config)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("override", "error", "message"),
    [
        ({"env__opponent": "open"}, InvalidValueError, "'open' leaves every seat to the caller"),
        ({"env__opponent": "mctz"}, OpponentError, "'mctz' was given, .*did you mean 'mcts'"),
        ({"env__game": "null"}, InvalidValueError, "chooses no game: give one of task_id"),
        ({"env__game": "kuhn_pokr"}, GameError, "'kuhn_pokr' was given, .*did you mean 'kuhn_poker'"),
        (
            {"run__device": "gpu"},
            InvalidValueError,
            "run.device must be auto, cpu, cuda or cuda:N, not 'gpu'",
        ),
        ({"run__device": "meta"}, InvalidValueError, "run.device must be auto, .* not 'meta'"),
        ({"run__device": "cuda:99"}, InvalidValueError, "run.device is 'cuda:99', but torch finds"),
        (
            {"model__model_name": "tinny"},
            ModelError,
            "'tinny' is unknown; did you mean 'tiny'",
        ),
        ({"model__model_name": "/no/where"}, ModelError, "'/no/where' is not a folder"),
    ],
)
def test_named_errors(
    override: dict[str, str], error: type[TaskGymError], message: str, tmp_path: Path
) -> None:
    assert_refused(small(tmp_path / "run", **override), error, message)


def test_an_output_dir_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(InvalidValueError, match=r"run.output_dir .*run' is a file"):
        train_quietly(small(tmp_path / "run"))


def test_an_output_dir_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unset shell variable must not make a run of the current directory."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidValueError, match=r"run\.output_dir is empty"):
        train_quietly(small(tmp_path, run__output_dir=""))
    assert list(tmp_path.iterdir()) == []


def test_an_output_dir_with_checkpoints_of_a_lost_run(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "run")
    (tmp_path / "run" / "config.yaml").unlink()
    with pytest.raises(InvalidValueError, match=r"has checkpoints, but no config\.yaml"):
        train_quietly(small(tmp_path / "run"))


def test_an_output_dir_that_holds_a_run_is_left_alone(finished: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*")}
    with pytest.raises(InvalidValueError, match="already holds a run: go on with --resume"):
        train_quietly(small(finished))
    assert {path: path.stat().st_mtime_ns for path in finished.rglob("*")} == before


def test_a_mistyped_game_or_model_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for override in ({"env__game": "kuhn_pokr"}, {"model__model_name": "tinny"}, {"run__init_from": "no"}):
        config = small(tmp_path, **override)
        unnamed = dataclasses.replace(config.run, output_dir=None)
        with pytest.raises(TaskGymError):
            train_quietly(dataclasses.replace(config, run=unnamed))
    assert list(tmp_path.iterdir()) == []


def test_the_game_may_be_any_of_the_four_keys(tmp_path: Path) -> None:
    arguments = DECLARATION.arguments
    none = small(tmp_path, env__game="null").env
    assert arguments(dataclasses.replace(none, task_id=200000000))["task_id"] == 200000000
    assert arguments(dataclasses.replace(none, task_ids=(7, (9, 11))))["task_ids"] == [7, (9, 11)]
    # A game index is a hundred million task ids, ends included.
    by_index = arguments(dataclasses.replace(none, allowed_game_indices=(0, 2)))
    assert by_index["task_ids"] == [(0, 99_999_999), (200_000_000, 299_999_999)]
    named = arguments(dataclasses.replace(none, game="kuhn_poker", params={"players": 3}))
    assert (named["game"], named["params"]) == ("kuhn_poker", {"players": 3})


def test_actions_may_be_answered_by_name(tmp_path: Path) -> None:
    """Training, checkpoint and evaluation of a policy that writes "Bet" and "Pass"."""
    folders, one = {}, {"ppo__num_train_steps": "1", "run__exact_every": "1"}
    for answer in ("id", "name"):
        console = quiet()
        folder = folders[answer] = train(small(tmp_path / answer, env__answer=answer, **one), console=console)
        options = EvalOptions(saved_config(folder), checkpoint=folder, num_episodes=4)
        sampled = evaluate(options, quiet())["sampled"]
        assert sampled["all"]["episodes"] == 8 and sampled["all"]["illegal_rate"] == 0
    rows = {answer: read_rows(folder / "metrics.jsonl")[0] for answer, folder in folders.items()}
    assert rows["id"]["rollout/legal_mass"] != rows["name"]["rollout/legal_mass"]
    # Exact values are those of the policy as it answers, by number or by name.
    assert "eval/share" in rows["id"] and "eval/share" in rows["name"]
    exact = evaluate(dataclasses.replace(options, exact=True), quiet())["exact"]["policy"]
    after = json.loads((folders["name"] / "summary.json").read_text())["after"]
    assert exact["share"] == pytest.approx(after[SHARE])


def test_exact_values_are_asked_for_once_and_before_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asking counts the game's histories, and loading a model can take minutes."""
    asked: list[str] = []
    reason, load = GamePlayer.explain_unsolved, training._load_model

    def explain_unsolved(self: GamePlayer, env: Any) -> str:
        asked.append("size")
        return reason(self, env)

    def loaded(*arguments: Any) -> Any:
        asked.append("model")
        return load(*arguments)

    monkeypatch.setattr(GamePlayer, "explain_unsolved", explain_unsolved)
    monkeypatch.setattr(training, "_load_model", loaded)
    for every in ("1", "null"):
        asked.clear()
        train_quietly(small(tmp_path / every, run__exact_every=every, ppo__num_train_steps="2"))
        assert asked == ["size", "model"]


def test_without_exact_values_none_are_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """0 leaves them out before, between and after; a run whose table begins with them ends with them."""
    one = {"ppo__num_train_steps": "1"}

    def measures(run: Path, when: str) -> set[str]:
        rows: dict[str, float] = json.loads((run / "summary.json").read_text())[when]
        return {name for name in rows if "share" in name}

    shares = {"share of best response", "share, greedy"}
    asked = train_quietly(small(tmp_path / "asked", **one))
    assert measures(asked, "before") == measures(asked, "after") == shares
    train_quietly(small(asked, run__exact_every="0", ppo__num_train_steps="2"), resume=asked)
    assert measures(asked, "after") == shares
    monkeypatch.setattr("gamespiel.exact.exact.evaluate", lambda *arguments: pytest.fail("it was solved"))
    none = train_quietly(small(tmp_path / "none", run__exact_every="0", **one))
    assert measures(none, "before") == measures(none, "after") == set()


def test_exact_values_are_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two before training, sampled and greedy; one after step 1; two at the end. Step 0 has the first's."""
    solved, evaluate = [], exact.evaluate

    def evaluate_and_count(*arguments: Any, **keywords: Any) -> Any:
        solved.append(evaluate(*arguments, **keywords))
        return solved[-1]

    monkeypatch.setattr("gamespiel.exact.exact.evaluate", evaluate_and_count)
    run = train_quietly(
        small(tmp_path / "run", run__exact_every="1", run__eval_games="0", ppo__num_train_steps="2")
    )
    assert len(solved) == 5
    shares = [row["eval/share"] for row in rows_of(run)]
    assert shares == [solved[0].share, solved[2].share]
    assert (
        json.loads((run / "summary.json").read_text())["after"]["share of best response"] == solved[3].share
    )


def test_a_full_disk_is_named_and_the_run_goes_on(finished: Path, tmp_path: Path) -> None:
    """/dev/full takes nothing: the metrics of the first step are the first that it gets."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "metrics.jsonl").symlink_to("/dev/full")
    message = (
        rf"^'{run}/metrics.jsonl' cannot be written: No space left on device \([\d,.]+ MiB are free in "
        rf"'{run}'\)\. Checkpoints are whole; make room and go on: gamespiel train --resume {run}$"
    )
    with pytest.raises(runs.DiskFullError, match=message):
        train_quietly(small(run))
    (run / "metrics.jsonl").unlink()
    train_quietly(saved_config(run), resume=run)
    assert_same_run(run, finished)


def test_the_card_and_the_adapters_name_no_folder(finished: Path) -> None:
    adapters = checkpoint.find(finished) / "adapter"
    card, settings = ((adapters / name).read_text() for name in ("README.md", "adapter_config.json"))
    assert '| `env.game` | "kuhn_poker" |' in card and f"after step {STEPS} of PPO" in card
    assert f"with GameSpiel {__version__}." in card
    assert f"| `rollout/reward` | {rows_of(finished)[-1]['rollout/reward']:.4g} |" in card
    assert json.loads(settings)["base_model_name_or_path"] is None
    for place in (str(ROOT), str(finished)):
        assert place not in card + settings
