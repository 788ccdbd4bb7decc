"""The embedded model, and the script that makes it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch

from agents.decoding import ChatCodec, ChoiceDecoder
from agents.engines import TransformersEngine
from agents.models import TINY, ModelSettings, load_base, load_tokenizer
from gamespiel.make_tiny import GAMES, Recipe, make, random_play

LONGEST_PROMPT = 128


@pytest.mark.parametrize(("game", "mass"), [*zip(GAMES, (0.99, 0.99, 0.95), strict=True)])
def test_prompts_are_short_and_the_answers_known(game: str, mass: float) -> None:
    """What the model was made for: its games' states in few tokens, nearly all mass on what is legal.

    Poker has three answers, tic-tac-toe nine whose legal ones change from state to state.
    """
    states = random_play(game, episodes=40, seed=12345)
    codec = ChatCodec(load_tokenizer(ModelSettings()))
    prompts = [codec.encode_prompt(state.text) for state in states]
    assert max(map(len, prompts)) <= LONGEST_PROMPT
    decoder = ChoiceDecoder(codec, TransformersEngine(load_base(ModelSettings(), "cpu", seed=0)))
    drawn = decoder.sample(
        prompts, [state.legal for state in states], lambda depth: torch.rand(len(states)).double().numpy()
    )
    assert float(drawn.legal_mass.mean()) > mass


def test_it_knows_no_strategy() -> None:
    """Every legal answer about equally likely: no probability is further than a tenth from uniform."""
    states = random_play("leduc_poker", episodes=100, seed=7)
    codec = ChatCodec(load_tokenizer(ModelSettings()))
    decoder = ChoiceDecoder(codec, TransformersEngine(load_base(ModelSettings(), "cpu", seed=0)))
    answers = decoder.distribution([codec.encode_prompt(s.text) for s in states], [s.legal for s in states])
    assert max(abs(p - 1 / len(answer)).max() for p, answer in zip(answers, answers, strict=True)) < 0.1


def test_what_ships_is_what_the_recipe_says() -> None:
    made = json.loads((TINY / "made.json").read_text())
    assert made["recipe"] == dataclasses.asdict(Recipe())
    base = load_base(ModelSettings(), "cpu", seed=0)
    assert made["parameters"] == sum(p.numel() for p in base.parameters())
    assert 100_000 <= made["parameters"] <= 1_000_000


def test_the_script_makes_a_model_that_loads(tmp_path: Path) -> None:
    recipe = Recipe(episodes_per_game=3, vocab_size=300, steps=2, batch_size=3, hidden_size=16, head_dim=4)
    made = make(recipe, tmp_path)
    settings = ModelSettings(str(tmp_path))
    base, codec = load_base(settings, "cpu", seed=0), ChatCodec(load_tokenizer(settings))
    assert sum(p.numel() for p in base.parameters()) == made["parameters"]
    assert base.config.vocab_size == len(codec.tokenizer) == 300
