"""Runs small enough for tests, and a comparison of two runs."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import traceback
from collections.abc import Callable, Container, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from gamespiel.agents.models.optimizer import read_moments
from gamespiel.agents.runs import checkpoint
from gamespiel.agents.runs.loggers import read_rows
from gamespiel.config import Config, resolve, saved_config
from gamespiel.measure.evaluation import evaluate
from gamespiel.measure.options import EvalOptions
from gamespiel.training.run import train
from tests.consoles import quiet, read_console

ROOT = Path(__file__).parents[2]
STEPS = 12
PADDED = {
    "model.reading": "padded", "ppo.batch_size": "512", "ppo.mini_batch_size": "600",
    "ppo.gradient_accumulation_steps": "1", "ppo.num_minibatches": "0", "ppo.minibatch_unit": "turn",
    "ppo.ppo_epochs": "5", "ppo.lam": "0.95", "ppo.ent_coef": "0.02", "ppo.init_kl_coef": "0.01",
    "ppo.adaptive_kl": "true", "ppo.target_kl": "0.7", "ppo.kl_horizon": "20000",
    "ppo.all_actions": "false",
}  # fmt: skip
"""An earlier form of the preset ``tiny``, for which the tests' numbers were worked out."""

SMALL = PADDED | {
    "env.task_id": "null",
    "env.game": "kuhn_poker",
    "ppo.batch_size": "6",
    "ppo.mini_batch_size": "5",
    "ppo.gradient_accumulation_steps": "2",
    "ppo.ppo_epochs": "2",
    "ppo.num_train_steps": str(STEPS),
    "run.seed": "3",
    "run.eval_games": "3",
    "run.checkpoint_every": "1",
    "run.keep_checkpoints": "100",
    "run.device": "cpu",
    "run.num_threads": "1",
}
"""The tiny preset on a game of twelve information states: a second per run. The last minibatch is smaller."""


def list_overrides(folder: Path, more: Mapping[str, str]) -> dict[str, str]:
    """Returns the keys of the small configuration, and others, which may have ``__`` for the dot."""
    others = {name.replace("__", "."): value for name, value in more.items()}
    return SMALL | {"run.output_dir": str(folder)} | others


def small(folder: Path, **more: str) -> Config:
    """Returns the small configuration, with overrides as ``run__seed="4"``."""
    return resolve("tiny", overrides=list_overrides(folder, more).items())


STAGES = [
    {"name": "easy", "opponent": "first", "threshold": 0.3, "min_episodes": 8},
    {"name": "mixed", "opponent": {"random": 1, "first": 2}, "threshold": 0.3, "min_episodes": 8},
    {"name": "hard", "opponent": "random"},
]
STAGED = {
    "curriculum.stages": json.dumps(STAGES),
    "curriculum.progression_window": "10",
    "curriculum.earlier_share": "0.2",
    "curriculum.failure_replay_prob": "0.4",
    "curriculum.failure_buffer_size": "5",
    "curriculum.max_replays": "2",
}
"""A curriculum whose stages are soon over, and a store of failures that is soon full."""


def staged(folder: Path, **more: str) -> Config:
    """Returns the small configuration with the curriculum."""
    return small(folder, **STAGED | more)


def mark_samples(names: Iterable[str], samples: Container[str]) -> list[Any]:
    """Returns names as parameters, of which ``make test`` takes the samples, and a room's tests none."""
    marks = [pytest.mark.families]
    return [
        pytest.param(name, marks=[*marks, pytest.mark.sample] if name in samples else marks) for name in names
    ]


def train_command(folder: Path, **more: str) -> list[str]:
    """Returns ``python train.py`` with the small configuration."""
    return [sys.executable, str(ROOT / "train.py"), *options_of(list_overrides(folder, more))]


def options_of(overrides: Mapping[str, str]) -> list[str]:
    """Returns keys as options of a command."""
    return [part for key, value in overrides.items() for part in (f"--{key}", value)]


def train_quietly(config: Config, resume: Path | str | None = None) -> Path:
    return train(config, resume, quiet())


def train_aloud(config: Config, resume: Path | str | None = None) -> tuple[Path, str]:
    """Returns the run, and what was shown in a terminal so wide that no line is broken."""
    console = quiet(width=1000)
    return train(config, resume, console), read_console(console)


def evaluate_to_file(
    folder: Path, config: Config, width: int = 1000, nulls: str = "-?Infinity", **options: Any
) -> tuple[dict[str, Any], str]:
    """Returns the results as their file has them, whose path is given as text, and what was shown.

    ``nulls`` is the pattern of the numbers in the place of which the file has null.
    """
    path: Any = str(folder / "result.json")
    results, printed = evaluate_aloud(EvalOptions(config=config, output=path, **options), width)
    written = json.loads(Path(path).read_text())
    assert written == json.loads(re.sub(nulls, "null", json.dumps(results)))
    return written, printed


def evaluate_aloud(options: EvalOptions, width: int = 1000) -> tuple[dict[str, Any], str]:
    """Returns the results, and what was shown."""
    console = quiet(width)
    return evaluate(options, console), read_console(console)


def fork(work: Callable[[], object]) -> int:
    """Returns the id of a fork of this process, which works and ends, with status 0 if all went well."""
    if child := os.fork():
        return child
    status = 1
    try:
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def resume(run: Path) -> Path:
    return train_quietly(saved_config(run), resume=run)


def go_back(run: Path, copy: Path, step: int) -> Path:
    """Returns a copy of a run that was killed after a step: it has later metrics, and no later checkpoint."""
    shutil.copytree(run, copy)
    for later in checkpoint.checkpoints(copy):
        if checkpoint.step_of(later) > step:
            shutil.rmtree(later)
    return copy


def assert_repeated(run: Path, copy: Path, step: int) -> None:
    """Checks that a run goes on from a step to the same end."""
    assert_same_run(resume(go_back(run, copy, step)), run)


def steps_of(run: Path) -> list[int]:
    """Returns the steps of a run's checkpoints."""
    return [int(path.name.removeprefix("step-")) for path in checkpoint.checkpoints(run)]


_OF_THE_MACHINE = re.compile(r"(time|machine)/.*|seconds")


def timeless(row: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a step's metrics without those that the clock and the machine decide."""
    return {key: value for key, value in row.items() if not _OF_THE_MACHINE.fullmatch(key)}


def rows_of(run: Path) -> list[dict[str, Any]]:
    """Returns a run's metrics without those of the clock and the machine."""
    return [timeless(row) for row in read_rows(run / "metrics.jsonl")]


def assert_same_run(run: Path, other: Path) -> None:
    """Compares bit for bit: adapters, value head, optimizer, counters, metrics and the final table."""
    newest, others = checkpoint.find(run), checkpoint.find(other)
    assert newest.name == others.name
    for name in ("adapter/adapter_model.safetensors", "value_head.safetensors"):
        weights, theirs = load_file(newest / name), load_file(others / name)
        assert weights.keys() == theirs.keys()
        assert [key for key in weights if not torch.equal(weights[key], theirs[key])] == []
    moments, theirs = (read_moments(folder / "optimizer.safetensors") for folder in (newest, others))
    assert moments["param_groups"] == theirs["param_groups"]
    assert moments["state"].keys() == theirs["state"].keys()
    for index, state in moments["state"].items():
        assert all(torch.equal(value, theirs["state"][index][name]) for name, value in state.items())
    counters = [json.loads((folder / "state.json").read_text()) for folder in (newest, others)]
    for counted in counters:
        assert counted.pop("seconds") > 0
    assert counters[0] == counters[1]
    samplers = [folder / checkpoint.SAMPLERS for folder in (newest, others)]
    assert samplers[0].exists() == samplers[1].exists()
    if samplers[0].exists():
        assert samplers[0].read_text() == samplers[1].read_text()
    assert rows_of(run) == rows_of(other)
    assert (run / "summary.json").read_text() == (other / "summary.json").read_text()


# -- weights -------------------------------------------------------------------------------------------------

ROUNDED = 0.002
"""The largest ``distance`` of weights that were learned from float sums in different orders.

It was at most 0.0003 where it was measured, and single weights differ several times as much on another
processor. Runs that learn from other episodes are more than 1 apart.
"""


def adapters_of(run: Path) -> dict[str, torch.Tensor]:
    return load_file(checkpoint.find(run) / "adapter" / "adapter_model.safetensors")


def adapter_distance(run: Path, other: Path) -> float:
    """Returns the ``distance`` of two runs' adapters."""
    return distance(adapters_of(run), adapters_of(other))


def distance(weights: Mapping[str, Any], others: Mapping[str, Any]) -> float:
    """Returns how far weights are apart, as a share of how far the other ones have moved.

    The matrices lora_B begin at zero, so their norm is what was learned. Single weights do not compare: Adam
    turns the rounding of a gradient near zero into a part of the rate, and processors round differently.
    """
    assert weights.keys() == others.keys()
    names = [name for name in others if "lora_B" in name]
    ours, theirs = (
        torch.cat([torch.as_tensor(arrays[name]).flatten() for name in names]) for arrays in (weights, others)
    )
    return float((ours - theirs).norm() / theirs.norm())
