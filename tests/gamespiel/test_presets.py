"""The presets: large models' fit their cards, and each makes a step, with small weights if need be."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gamespiel.agents.models.memory_plan import GIB, plan
from gamespiel.agents.runs.loggers import read_rows
from gamespiel.config import preset_path, presets, resolve, to_dict
from gamespiel.planning import load_of
from tests.agents.families import FAMILIES
from tests.gamespiel.runs import train_quietly

CARD = {
    f"{model}{'' if card == own else f'-{card}gb'}": card
    for model, own in (("qwen2.5-3b", 16), ("qwen3-4b", 24))
    for card in (12, 16, 24, 80)
}
"""Presets, and the GiB of their cards."""

ELSEWHERE = ("smollm2-135m", "affine-pool")
"""Their steps are tested elsewhere: in ``test_other_weights.py`` with a small Llama, and in
``test_external.py`` by an evaluation, because its opponent searches for seconds per move."""

MEMORY = {
    "model": {"use_4bit", "use_nested_quant", "dtype", "gradient_checkpointing"},
    "ppo": {"tokens_per_forward", "tokens_per_backward"},
}
"""Keys that decide what memory a run takes, and not what is learned but for rounding."""


@pytest.mark.parametrize(("name", "card"), CARD.items())
def test_it_fits_its_card(name: str, card: int) -> None:
    fits = plan(load_of(resolve(name)))
    assert fits.peak <= 0.9 * card * GIB
    said = re.search(r"one GPU of (\d+) GB", preset_path(name).read_text(encoding="utf-8"))
    assert said is not None and int(said[1]) == card
    if card == 12:  # as docs/models.md says
        assert fits.fits((8 if name.startswith("qwen2.5") else 10) * GIB)


@pytest.mark.parametrize("name", CARD)
def test_presets_of_a_model_differ_in_memory_alone(name: str) -> None:
    assert [each for each in presets() if each.startswith("qwen")] == sorted(CARD)
    own, first = (to_dict(resolve(each)) for each in (name, name.split("b-")[0].removesuffix("b") + "b"))
    for section, keys in first.items():
        for key, value in keys.items():
            assert own[section][key] == value or key in MEMORY.get(section, ()), (section, key)


@pytest.mark.parametrize(
    "name",
    [
        name
        if name in ("qwen3-4b", "tiny-trace", "tiny-selfplay")
        else pytest.param(name, marks=pytest.mark.families)
        for name in presets()
        if name not in ELSEWHERE
    ],
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
