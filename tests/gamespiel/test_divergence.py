"""Divergence: a run goes back to a checkpoint with half the learning rate, and gives up after some tries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from gamespiel import training
from gamespiel.agents.learning.divergence import DivergedError
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.runs import checkpoint
from gamespiel.agents.update import Update
from gamespiel.config import resolve, saved_config
from tests.gamespiel.runs import STEPS, assert_same_run, quiet, rows_of, small, steps_of, train_quietly

RATE = resolve("tiny").ppo.learning_rate
NO_MEASURES = {"run__eval_games": "0", "run__exact_every": "0"}


def rate_at(step: int, factor: float) -> float:
    """Returns the rate of a step, counted from 0: the preset's falls to 0 linearly."""
    return factor * RATE * (STEPS - step) / STEPS


def losses_break(monkeypatch: pytest.MonkeyPatch, first: int, above: float) -> None:
    """Makes the loss NaN from step ``first`` on, at learning rates above ``above``."""
    loss = Update._sum_terms

    def instead(self: Update, *args: Any) -> Any:
        broken = self.step >= first and self.optimizer.param_groups[0]["lr"] > above
        return loss(self, *args) * (torch.nan if broken else 1.0)

    monkeypatch.setattr(Update, "_sum_terms", instead)


def test_back_to_the_checkpoint_with_half_the_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two updates per step: the third that fails is step 6's first, and the last checkpoint is after step 4.

    The rate of steps 5 and 6 is 8/12 and 7/12 of the preset's, so half of it is below 0.4. A kill changes
    nothing if it comes when the checkpoint's state is written, and metrics are not cut yet.
    """
    losses_break(monkeypatch, first=4, above=0.4 * RATE)
    console, run, struck = quiet(), tmp_path / "run", tmp_path / "struck"
    training.train(small(run, run__checkpoint_every="2", **NO_MEASURES), console=console)
    text = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert "step 5: an update whose loss or gradient is not finite was skipped" in text
    said = "step 6: the loss or the gradient of 3 updates in a row is not finite: back to the checkpoint"
    assert f"{said} after step 4, with 0.5 of the learning rate" in text
    rows = rows_of(run)
    assert [row["step"] for row in rows] == list(range(1, STEPS + 1))
    expected = [rate_at(step, 1.0 if step < 4 else 0.5) for step in range(STEPS)]
    assert [row["train/learning_rate"] for row in rows] == pytest.approx(expected)
    assert sum(row["train/skipped_updates"] for row in rows) == 0  # those that failed were cut off
    state = json.loads((checkpoint.find(run) / "state.json").read_text())
    assert state["backoff"] == {"rate_factor": 0.5, "step": 5, "halvings": 1}

    class KilledError(Exception):
        pass

    def kill(*args: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(checkpoint, "remove_after", kill)
        train_quietly(small(struck, run__checkpoint_every="2", **NO_MEASURES))
    train_quietly(saved_config(struck), resume=struck)
    assert_same_run(struck, run)


def test_weights_that_are_useless_in_play_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Step 5 makes weights so large that activations overflow.

    Their checkpoint is removed, and step 5 is made again from step 4.
    """
    update = Update.run

    def ruinous(self: Update) -> Any:
        means = update(self)
        actor = self.optimizer.param_groups[0]
        if self.step == 4 and actor["lr"] > 0.4 * RATE:
            with torch.no_grad():
                actor["params"][1].fill_(3e38)
        return means

    monkeypatch.setattr(Update, "run", ruinous)
    console, run = quiet(), tmp_path / "run"
    training.train(small(run, **NO_MEASURES), console=console)
    text = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert "step 6: the model's logits are not finite" in text and "the checkpoint after step 4" in text
    rates = [row["train/learning_rate"] for row in rows_of(run)]
    assert rates == pytest.approx([rate_at(step, 1.0 if step < 4 else 0.5) for step in range(STEPS)])
    assert steps_of(run) == list(range(STEPS + 1))
    for folder in checkpoint.checkpoints(run):
        weights = load_file(folder / "adapter" / "adapter_model.safetensors")
        assert all((value.abs() < 1e20).all() for value in weights.values())


def test_it_gives_up_after_five_halvings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    losses_break(monkeypatch, first=2, above=0.0)
    run = tmp_path / "run"
    with pytest.raises(DivergedError, match=r"after each of 5 halvings .*ppo\.learning_rate"):
        train_quietly(small(run, **NO_MEASURES))
    state = json.loads((checkpoint.find(run) / "state.json").read_text())
    assert state["backoff"] == {"rate_factor": 1 / 32, "step": 3, "halvings": 5}


def test_a_base_that_is_useless_is_an_error_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def useless(self: LLMPPO, *args: object) -> bool:
        raise DivergedError("step 1: the model's logits are not finite", self.step, in_play=True)

    monkeypatch.setattr(LLMPPO, "collect_rollouts", useless)
    with pytest.raises(DivergedError, match=r"not finite, and there is no checkpoint"):
        train_quietly(small(tmp_path / "run", **NO_MEASURES))
