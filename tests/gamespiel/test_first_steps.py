"""First steps: of every preset, which fits its card, and of a run on every game."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from game_gym.games import DECLARED
from gamespiel.agents.models.memory_plan import GIB, plan
from gamespiel.agents.runs.loggers import read_rows
from gamespiel.config import preset_path, presets, resolve, to_dict
from gamespiel.training.planning import load_of
from tests.agents.families import FAMILIES
from tests.gamespiel.runs import mark_samples, small, train_quietly

CARD = {
    f"{model}{'' if card == default else f'-{card}gb'}": card
    for model, default in (("qwen2.5-3b", 16), ("qwen3-4b", 24))
    for card in (12, 16, 24, 80)
} | {"qwen3-0.6b": 6, "qwen3-1.7b": 8, "qwen3-32b": 80}
"""Presets, and the GiB of their cards."""
ELSEWHERE = ("smollm2-135m", "smollm2-135m-gae", "affine-pool")
"""Their steps are tested elsewhere: in ``test_other_weights.py`` with a small Llama, and in
``test_external.py`` by an evaluation, because its opponent searches for seconds per move."""
MEMORY = {
    "model": {"use_4bit", "use_nested_quant", "dtype", "gradient_checkpointing"},
    "ppo": {"tokens_per_forward", "tokens_per_backward"},
}
"""Keys that decide what memory a run takes, and not what is learned but for rounding."""


@pytest.mark.parametrize(("name", "card"), CARD.items())
def test_it_fits_its_card_and_differs_in_memory_alone(name: str, card: int) -> None:
    fits = plan(load_of(resolve(name)))
    assert fits.peak <= 0.9 * card * GIB
    said = re.search(r"one GPU of (\d+) GB", preset_path(name).read_text(encoding="utf-8"))
    assert said is not None and int(said[1]) == card
    if card == 12:  # as docs/models.md says
        assert fits.fits((8 if name.startswith("qwen2.5") else 10) * GIB)
    assert [each for each in presets() if each.startswith("qwen")] == sorted(CARD)
    preset, first = (to_dict(resolve(each)) for each in (name, name.split("b-")[0].removesuffix("b") + "b"))
    for section, keys in first.items():
        for key, value in keys.items():
            assert preset[section][key] == value or key in MEMORY.get(section, ()), (section, key)


@pytest.mark.parametrize(
    "name",
    mark_samples(
        [name for name in presets() if name not in ELSEWHERE], ("qwen3-4b", "tiny-trace", "tiny-selfplay")
    ),
)
def test_it_makes_a_step(name: str, tmp_path: Path) -> None:
    """Large models are small ones of the same family. Adapters learn at once, without the critic's start."""
    overrides = {
        "ppo.batch_size": "2",
        "ppo.num_train_steps": "1",
        "ppo.critic_warmup_steps": "0",
        "run.eval_games": "0",
        "run.exact_every": "0",
        "run.device": "cpu",
        "run.output_dir": str(tmp_path / "run"),
    }
    if name in CARD:
        folder = FAMILIES[name.split("-")[0]].save(tmp_path / "model")
        overrides |= {"model.model_name": folder, "model.random_weights": "true"}
    if name not in ("tiny-curriculum", "tiny-trace"):  # which have tasks of their own
        overrides["env.game"] = "kuhn_poker"
    run = train_quietly(resolve(name, overrides=overrides.items()))
    (row,) = read_rows(run / "metrics.jsonl")
    assert row["step"] == 1 and row["train/skipped_updates"] == 0 and row["train/actor_grad_norm"] > 0


STEPS, EPISODES, MOVES = 2, 4, 3
SAMPLES = ("hearts", "catch", "matrix_pd")
"""Games of one, two and four seats, one with simultaneous moves: ``make test`` plays these alone."""
UNDECLARED = (
    "breakthrough", "catch", "connect_four", "dark_hex", "mancala", "matrix_pd", "nim", "oshi_zumo", "pig",
    "tiny_hanabi",
)  # fmt: skip
"""Games of one seat and of two, with hidden and with simultaneous moves, cooperation and dice. Four of them
have no information states in OpenSpiel."""


@pytest.mark.parametrize("game", mark_samples((*DECLARED, *UNDECLARED), SAMPLES))
def test_a_few_steps(game: str, tmp_path: Path) -> None:
    """Two steps of four games, cut after three moves: metrics are finite and agree, and adapters change."""
    changes = {
        "env__game": game, "env__params": json.dumps(DECLARED[game].params(1) if game in DECLARED else {}),
        "env__max_turns": str(MOVES),
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
