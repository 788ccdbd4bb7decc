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
from gamespiel.make_tiny import GAMES, Recipe, Shown, make, random_play

#: A prompt of the default game has at most this many tokens.
LONGEST_PROMPT = 128


#: What it would say without a mask is legal at least this often: nearly always in the smallest games, usually
#: elsewhere, and less where ids are many and change with every move.
LEGAL_MASS = {"leduc_poker": 0.99, "kuhn_poker": 0.99, "tic_tac_toe": 0.85, "blackjack": 0.95}
LEGAL_MASS |= {"amazons": 0.5, "othello": 0.45, "backgammon": 0.45, "clobber": 0.35, "chess": 0.15}
USUAL_MASS = 0.6


@pytest.fixture(scope="module")
def decoder() -> ChoiceDecoder:
    codec = ChatCodec(load_tokenizer(ModelSettings()))
    return ChoiceDecoder(codec, TransformersEngine(load_base(ModelSettings(), "cpu", seed=0)))


def short_states(game: str, decoder: ChoiceDecoder, count: int) -> list[Shown]:
    """States of other random games than it was made from, those with prompts of a moderate length."""
    states = random_play(game, states=4 * count, episodes=200, seed=12345)
    return [s for s in states if len(decoder.codec.encode_prompt(s.text)) <= 400][:count]


@pytest.mark.parametrize("game", GAMES)
def test_it_answers_every_game_with_what_is_legal(game: str, decoder: ChoiceDecoder) -> None:
    """Without a mask most of what it would say is legal, in the words of games it was not made from."""
    states = short_states(game, decoder, 32)
    torch.manual_seed(0)
    drawn = decoder.sample(
        [decoder.codec.encode_prompt(state.text) for state in states],
        [state.legal for state in states],
        lambda depth: torch.rand(len(states)).double().numpy(),
    )
    assert float(drawn.legal_mass.mean()) > LEGAL_MASS.get(game, USUAL_MASS)


def test_the_default_games_prompts_are_short(decoder: ChoiceDecoder) -> None:
    states = random_play("leduc_poker", states=900, episodes=2000, seed=12345)
    assert max(len(decoder.codec.encode_prompt(state.text)) for state in states) <= LONGEST_PROMPT


def test_it_knows_no_strategy(decoder: ChoiceDecoder) -> None:
    """Every legal answer about equally likely: no probability is further than a tenth from uniform."""
    states = random_play("leduc_poker", states=200, episodes=100, seed=7)
    answers = decoder.distribution(
        [decoder.codec.encode_prompt(state.text) for state in states], [state.legal for state in states]
    )
    assert max(abs(p - 1 / len(answer)).max() for p, answer in zip(answers, answers, strict=True)) < 0.1


def test_what_ships_is_what_the_recipe_says() -> None:
    made = json.loads((TINY / "made.json").read_text())
    assert made["recipe"] == dataclasses.asdict(Recipe())
    base = load_base(ModelSettings(), "cpu", seed=0)
    assert made["parameters"] == sum(p.numel() for p in base.parameters())
    assert 100_000 <= made["parameters"] <= 1_000_000


def test_the_script_makes_a_model_that_loads(tmp_path: Path) -> None:
    recipe = Recipe(states_per_game=20, vocab_size=300, steps=2, batch_tokens=600, hidden_size=16, head_dim=4)
    made = make(recipe, tmp_path, games=("kuhn_poker", "hex"))
    settings = ModelSettings(str(tmp_path))
    base, codec = load_base(settings, "cpu", seed=0), ChatCodec(load_tokenizer(settings))
    assert sum(p.numel() for p in base.parameters()) == made["parameters"]
    assert base.config.vocab_size == len(codec.tokenizer) == 300
