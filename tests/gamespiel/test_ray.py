"""A run whose environments are on a Ray cluster: the same bits as without."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gamespiel.environments.making import close_pools
from tests.gamespiel.runs import assert_same_run, small, train_quietly

ray: Any = pytest.importorskip("ray", reason="Ray is not installed")

from tests.task_gym.workers.test_ray import cluster  # noqa: E402

__all__ = ["cluster"]


@pytest.fixture(autouse=True)
def closed_pools() -> Iterator[None]:
    yield
    close_pools()


@pytest.mark.launch
def test_two_steps_on_ray_change_no_bit(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the two parts of searches, and an evaluation."""
    monkeypatch.setattr("gamespiel.agents.envs.LEAST_SEARCH", 0.0)
    options = {
        "env__opponent": "mcts:5x1", "ppo__num_train_steps": "2",
        "run__eval_games": "2", "run__exact_every": "0",
    }  # fmt: skip
    local = train_quietly(small(tmp_path / "local", **options))
    address = {"run__env_workers": "1", "run__ray_address": cluster.address}
    assert_same_run(train_quietly(small(tmp_path / "ray", **options, **address)), local)
