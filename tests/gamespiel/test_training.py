"""Training: a run's files, the errors before it begins, and its folder, which belongs to one process."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch
from matplotlib.image import imread
from safetensors.torch import load_file

from gamespiel import __version__, runs
from gamespiel.agents.models.loading import ModelError
from gamespiel.agents.models.optimizer import read_moments
from gamespiel.agents.runs import checkpoint
from gamespiel.agents.runs.checkpoint import CheckpointError
from gamespiel.agents.sampling.vllm.connect import UnsuitableServerError
from gamespiel.config import InvalidValueError, load, resolve, save, saved_config
from gamespiel.runs import RunInUseError
from task_gym.errors import TaskGymError
from tests.gamespiel.runs import (
    ROOT,
    STEPS,
    fork,
    resume,
    rows_of,
    small,
    steps_of,
    train_aloud,
    train_quietly,
)

pytestmark = [pytest.mark.trains, pytest.mark.sample]


def test_a_runs_folder(finished: Path) -> None:
    assert {path.name for path in finished.iterdir()} == {
        "config.yaml", "metrics.jsonl", "checkpoints", "learning_curve.png", "summary.json", "games.jsonl",
        ".lock",
    }  # fmt: skip
    assert load(finished / "config.yaml") == small(finished)
    assert steps_of(finished) == list(range(STEPS + 1))  # the one of step 0 is there from the start
    assert {path.name for path in checkpoint.find(finished).iterdir()} == {
        "adapter", "value_head.safetensors", "optimizer.safetensors", "manifest.json", "state.json",
        "values.safetensors",
    }  # fmt: skip
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
    assert rows_of(finished)[0]["eval/share"] == summary["before"]["share of best response"]
    # The untrained model imitates uniformly random play, and uniform against uniform is worth 0.
    assert abs(summary["before"]["share of best response"]) < 0.05
    assert summary["before"] != summary["after"]


def test_the_tables_and_what_to_do_next_are_printed(tmp_path: Path) -> None:
    more = {"lora__lora_dropout": "0.1", "ppo__num_train_steps": "5", "run__eval_games": "0"}
    more |= {"run__checkpoint_every": "2", "run__keep_checkpoints": "2"}
    folder, text = train_aloud(small(tmp_path / "run", **more))
    assert steps_of(folder) == [4, 5]  # 0, 2, 4 and the last
    assert "lora.lora_dropout = 0.1 is applied nowhere" in text
    assert f"run folder: {folder}" in text
    assert "share of best response" in text and "success rate" not in text  # no games, no sampled measures
    assert text.splitlines()[-2:] == [
        f"gamespiel eval --checkpoint {folder} --exact  # evaluate, or --opponent mcts:100",
        f"gamespiel train --resume {folder} --ppo.num_train_steps 10  # go on; "
        f"play it: gamespiel.load_policy({str(folder)!r})",
    ]


@pytest.mark.usefixtures("here")
def test_a_run_without_measures_and_without_a_folder() -> None:
    """Against a search there are no exact values; the folder is a new one."""
    nothing = {"env__opponent": "mcts:2", "ppo__num_train_steps": "1", "run__eval_games": "0"}
    config = small(Path(), **nothing)
    run, text = train_aloud(dataclasses.replace(config, run=dataclasses.replace(config.run, output_dir=None)))
    assert "before" not in text and "decisions in" in text and "--exact" not in text
    assert run.parent == Path("runs")
    assert run.name.startswith("kuhn_poker-") and run.name.endswith("-seed3")
    assert load(run / "config.yaml").run.output_dir == str(run)


def weights(checkpoint_folder: Path) -> dict[str, torch.Tensor]:
    adapters = load_file(checkpoint_folder / "adapter" / "adapter_model.safetensors")
    return adapters | load_file(checkpoint_folder / "value_head.safetensors")


def test_a_new_run_from_the_weights_of_another(finished: Path, tmp_path: Path) -> None:
    """The new run has another game and seed, starts at step 0, and has a new optimizer."""
    asked = small(
        tmp_path / "run", env__game="leduc_poker", env__max_turns="20", run__seed="5", run__eval_games="0",
        run__init_from=str(finished), ppo__num_train_steps="1",
    )  # fmt: skip
    run, said = train_aloud(asked)
    newest = checkpoint.find(finished)
    assert saved_config(run).run.init_from == str(newest)  # names the step: the other run may go on
    assert f"starting from the weights of {newest}" in said
    begun, taken = weights(run / "checkpoints" / "step-000000"), weights(newest)
    assert begun.keys() == taken.keys()
    assert [name for name in begun if not torch.equal(begun[name], taken[name])] == []
    state = json.loads((run / "checkpoints" / "step-000000" / "state.json").read_text())
    assert (state["step"], state["num_timesteps"]) == (0, 0)
    assert read_moments(run / "checkpoints" / "step-000000" / "optimizer.safetensors")["state"] == {}
    resume(run)  # its configuration has init_from


@pytest.mark.parametrize(
    ("override", "error", "message"),
    [
        ({"env__game": "null"}, InvalidValueError, "chooses no game: give one of task_id"),
        ({"run__device": "cuda:99"}, InvalidValueError, "run.device is 'cuda:99', but"),
        ({"model__model_name": "tinny"}, ModelError, "'tinny' is unknown; did you mean 'tiny'"),
        (
            {"run__use_vllm": "true", "run__vllm_base_url": "http://127.0.0.1:9/v1"},
            UnsuitableServerError,
            r"vLLM server http://127\.0\.0\.1:9 gave no answer",
        ),
        ({"run__init_from": "FINISHED", "lora__r": "8"}, CheckpointError, "does not fit"),
    ],
)
def test_named_errors_leave_no_folder(
    override: dict[str, str], error: type[TaskGymError], message: str, finished: Path, tmp_path: Path
) -> None:
    override = {key: str(finished) if value == "FINISHED" else value for key, value in override.items()}
    with pytest.raises(error, match=message):
        train_quietly(small(tmp_path / "run", **override))
    assert not (tmp_path / "run").exists()


def test_output_dirs_that_are_refused(finished: Path, here: Path) -> None:
    """An unset shell variable, which is an empty name, must not make a run of the current directory."""
    lost, file = here / "lost", here / "file"
    shutil.copytree(finished, lost)
    (lost / "config.yaml").unlink()
    file.write_text("")
    for name, message in (
        ("", r"run\.output_dir is empty"),
        (str(file), r"run.output_dir .*file' is a file"),
        (str(lost), r"has checkpoints, but no config\.yaml"),
        (str(finished), "already holds a run: go on with --resume"),
    ):
        before = {path: path.stat().st_mtime_ns for path in (*here.iterdir(), *finished.rglob("*"))}
        with pytest.raises(InvalidValueError, match=message):
            train_quietly(small(here, run__output_dir=name))
        after = {path: path.stat().st_mtime_ns for path in (*here.iterdir(), *finished.rglob("*"))}
        assert after == before


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
    monkeypatch.setattr("game_gym.exact.evaluate", lambda *arguments: pytest.fail("it was solved"))
    none = train_quietly(small(tmp_path / "none", run__exact_every="0", **one))
    assert measures(none, "before") == measures(none, "after") == set()
    assert "eval/share" not in rows_of(none)[0]


def test_a_full_disk_is_named_and_the_run_goes_on(finished: Path, tmp_path: Path) -> None:
    """/dev/full takes nothing: the metrics of the first step are the first that it gets."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "metrics.jsonl").symlink_to("/dev/full")
    said = rf"'{run}/metrics.jsonl' cannot be written: No space .* \([\d,.]+ MiB .* train --resume {run}$"
    with pytest.raises(runs.DiskFullError, match=said):
        train_quietly(small(run, ppo__num_train_steps="1"))
    (run / "metrics.jsonl").unlink()
    assert rows_of(resume(run)) == rows_of(finished)[:1]


def test_the_card_and_the_adapters_name_no_folder(finished: Path) -> None:
    adapters = checkpoint.find(finished) / "adapter"
    card, settings = ((adapters / name).read_text() for name in ("README.md", "adapter_config.json"))
    assert '| `env.game` | "kuhn_poker" |' in card and f"after step {STEPS} of PPO" in card
    assert f"with GameSpiel {__version__}." in card
    assert f"| `rollout/reward` | {rows_of(finished)[-1]['rollout/reward']:.4g} |" in card
    assert json.loads(settings)["base_model_name_or_path"] is None
    for place in (str(ROOT), str(finished)):
        assert place not in card + settings


def test_runs_of_one_second_have_a_folder_each(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs.time, "strftime", lambda form: "20260102-030405")
    config = small(here)
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
    with pytest.raises(InvalidValueError, match=r"run.output_dir .*/run': Not a directory"):
        runs.create(small(folder / "config.yaml" / "run")).__enter__()


def test_a_kill_lets_go(tmp_path: Path) -> None:
    """The lock is released even if a child of the killed process lives on."""
    reading, writing = os.pipe()

    def hold() -> None:
        with runs.own(tmp_path):
            child = subprocess.Popen(["sleep", "60"])
            os.write(writing, f"{child.pid}\n".encode())
            time.sleep(60)

    process = fork(hold)
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
    config, lock = small(tmp_path / "run"), runs.own

    def slow(folder: Path) -> object:
        save(config, folder / "config.yaml")
        return lock(folder)

    runs.check_free(config)
    monkeypatch.setattr(runs, "own", slow)
    with pytest.raises(InvalidValueError, match="already holds a run"), runs.create(config):
        raise AssertionError("the other run was overwritten")
