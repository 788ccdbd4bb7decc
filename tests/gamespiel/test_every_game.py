"""Training runs on every game of the table."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from game_gym.games import TABLE
from game_gym.task import encode
from gamespiel.agents.loggers import read_rows
from tests.gamespiel.runs import small, train_quietly

STEPS, EPISODES, MOVES = 2, 4, 3


@pytest.mark.parametrize("game", TABLE)
def test_a_few_steps(game: str, tmp_path: Path) -> None:
    """Two steps of four games, cut after three moves: metrics are finite and agree, and adapters change."""
    run = train_quietly(
        small(
            tmp_path / "run",
            env__game="null",
            env__task_id=str(encode(game, 1)),
            env__max_turns=str(MOVES),
            ppo__batch_size=str(EPISODES),
            ppo__num_train_steps=str(STEPS),
            ppo__ppo_epochs="1",
            run__eval_games="0",
            run__checkpoint_every=str(STEPS),
        )
    )
    rows = read_rows(run / "metrics.jsonl")
    assert [row["step"] for row in rows] == [1, 2]
    for row in rows:
        assert all(math.isfinite(value) for value in row.values() if value is not None)
        assert row["rollout/episodes"] == EPISODES and row["rollout/faults"] == 0
        assert 0 < row["rollout/legal_mass"] <= 1 and 0 < row["rollout/turns"] <= MOVES
        assert row["train/entropy"] >= 0 and row["train/kl_ref"] > -1e-6  # rounding
    assert rows[1]["decisions"] == EPISODES * (rows[0]["rollout/turns"] + rows[1]["rollout/turns"])
    before, after = (
        load_file(run / f"checkpoints/step-{step:06d}/adapter/adapter_model.safetensors")
        for step in (0, STEPS)
    )
    assert all(torch.isfinite(weights).all() for weights in after.values())
    assert any(not torch.equal(before[name], after[name]) for name in before)
