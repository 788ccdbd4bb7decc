"""Several runs at once in one process, as Optuna's ``n_jobs`` starts them."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from gamespiel import training
from tests.gamespiel.runs import assert_same_run, quiet, small, train_quietly

SHORT = {"ppo__num_train_steps": "2", "run__eval_games": "1"}


@pytest.mark.parametrize("drawn", ["false", "true"], ids=["saved weights", "drawn weights"])
def test_each_run_is_what_it_is_alone(drawn: str, tmp_path: Path) -> None:
    """Loading sets torch's default type and seed for the whole process, so models are made one by one."""
    seeds = ("3", "4", "5", "6")

    def go(seed: str) -> Path:
        more = SHORT | {"model__random_weights": drawn}
        return train_quietly(small(tmp_path / f"together{seed}", run__seed=seed, **more))

    with ThreadPoolExecutor(len(seeds)) as threads:
        together = list(threads.map(go, seeds))
    assert torch.get_default_dtype() == torch.float32
    for seed, run in zip(seeds, together, strict=True):
        more = SHORT | {"model__random_weights": drawn}
        assert_same_run(run, train_quietly(small(tmp_path / f"alone{seed}", run__seed=seed, **more)))


def test_a_warning_is_shown_by_the_run_that_it_is_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = training._Display.write

    def warning(self: training._Display, *args: object) -> None:
        write(self, *args)  # type: ignore[arg-type]
        logging.getLogger("gamespiel.agents").warning("seed %s", self._model.seed)

    monkeypatch.setattr(training._Display, "write", warning)
    consoles = {seed: quiet() for seed in ("3", "4")}

    def go(seed: str) -> None:
        training.train(small(tmp_path / seed, run__seed=seed, **SHORT), console=consoles[seed])

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(go, consoles))
    for seed, console in consoles.items():
        said = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
        assert [line for line in said if line.startswith("seed ")] == [f"seed {seed}"] * 2
