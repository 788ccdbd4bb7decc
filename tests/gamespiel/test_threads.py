"""Several runs at once in one process, as Optuna's ``n_jobs`` starts them."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import torch

from gamespiel import callbacks, training
from tests.gamespiel.runs import assert_same_run, quiet, small, train_quietly

SHORT = {"ppo__num_train_steps": "2", "run__eval_games": "1"}


def test_each_run_is_what_it_is_alone(tmp_path: Path) -> None:
    """Loading sets torch's default type and seed for the whole process, so models are made one by one."""
    seeds = ("3", "4", "5")

    def go(kind: str, seed: str) -> Path:
        more = SHORT | {"model__random_weights": "true"}
        return train_quietly(small(tmp_path / f"{kind}{seed}", run__seed=seed, **more))

    with ThreadPoolExecutor(len(seeds)) as threads:
        together = list(threads.map(partial(go, "together"), seeds))
    assert torch.get_default_dtype() == torch.float32
    for seed, run in zip(seeds, together, strict=True):
        assert_same_run(run, go("alone", seed))


def test_a_warning_is_shown_by_the_run_that_it_is_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = callbacks.DisplayWriter.write

    def warning(self: callbacks.DisplayWriter, *args: object) -> None:
        write(self, *args)  # type: ignore[arg-type]
        logging.getLogger("gamespiel.agents").warning("seed %s", self._model.seed)

    monkeypatch.setattr(callbacks.DisplayWriter, "write", warning)
    consoles = {seed: quiet() for seed in ("3", "4")}

    def go(seed: str) -> None:
        training.train(small(tmp_path / seed, run__seed=seed, **SHORT), console=consoles[seed])

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(go, consoles))
    for seed, console in consoles.items():
        said = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
        assert [line for line in said if line.startswith("seed ")] == [f"seed {seed}"] * 2


def test_other_types_than_float32_train_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading them changes torch's default type, also for the thread that trains."""
    write, refused = callbacks.DisplayWriter.write, []

    def start_another(self: callbacks.DisplayWriter, *args: object) -> None:
        write(self, *args)  # type: ignore[arg-type]
        if self._model.step == 1:
            half = small(tmp_path / "half", model__dtype="bfloat16", **SHORT)
            with ThreadPoolExecutor(1) as threads:
                refused.append(threads.submit(train_quietly, half).exception())

    with monkeypatch.context() as patch:
        patch.setattr(callbacks.DisplayWriter, "write", start_another)
        train_quietly(small(tmp_path / "run", **SHORT))
    assert str(refused[0]).startswith("model.dtype 'bfloat16' was given, and another thread of this process")
    assert not (tmp_path / "half").exists()
    train_quietly(small(tmp_path / "half", model__dtype="bfloat16", **SHORT))
