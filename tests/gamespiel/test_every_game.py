"""Training runs on every game of the table, and begins on every game that OpenSpiel has."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch
from safetensors.torch import load_file

from game_gym.games import DECLARED, TABLE
from game_gym.task import encode
from gamespiel.agents.collector import Collector
from gamespiel.agents.runs.loggers import read_rows
from gamespiel.config import resolve
from tests.gamespiel.runs import small, train_quietly

STEPS, EPISODES, MOVES = 2, 4, 3

SAMPLES = ("2048", "goofspiel", "hearts", "catch", "matrix_pd")
"""Games of one, two and four seats, some with simultaneous moves: ``make test`` plays these alone."""


def params_of(games: Iterable[str]) -> list[Any]:
    return [pytest.param(game, marks=[pytest.mark.families] * (game not in SAMPLES)) for game in games]


@pytest.mark.parametrize("game", params_of(TABLE))
def test_a_few_steps(game: str, tmp_path: Path) -> None:
    """Two steps of four games, cut after three moves: metrics are finite and agree, and adapters change."""
    changes = {
        "env__game": "null", "env__task_id": str(encode(game, 1)), "env__max_turns": str(MOVES),
        "ppo__batch_size": str(EPISODES), "ppo__num_train_steps": str(STEPS), "ppo__ppo_epochs": "1",
        "run__eval_games": "0", "run__checkpoint_every": str(STEPS),
    }  # fmt: skip
    run = train_quietly(small(tmp_path / "run", **changes))
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


UNDECLARED = (
    "breakthrough", "catch", "connect_four", "dark_hex", "mancala", "matrix_pd", "nim", "oshi_zumo", "pig",
    "tiny_hanabi",
)  # fmt: skip
"""Games of one seat and of two, with hidden and with simultaneous moves, cooperation and dice. Four of them
have no information states in OpenSpiel."""


@pytest.mark.parametrize("game", params_of((*DECLARED, *UNDECLARED)))
def test_the_default_run_begins(game: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``python train.py --env.game GAME`` comes to the first decision, but for the games before training."""

    class Decided(Exception):
        pass

    def decide(self: Collector, *arguments: Any) -> NoReturn:
        raise Decided

    monkeypatch.setattr(Collector, "decide", decide)
    overrides = {
        "env.game": game,
        "env.params": json.dumps(DECLARED[game].params(0) if game in DECLARED else {}),
        "ppo.batch_size": "2",
        "run.eval_games": "0",
        "run.output_dir": str(tmp_path / "run"),
    }
    config = resolve("tiny", overrides=[("env.task_id", "null"), *overrides.items()])
    assert config.run.exact_every  # which asks whether the game is small enough
    with pytest.raises(Decided):
        train_quietly(config)
