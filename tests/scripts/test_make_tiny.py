"""The embedded model, the script that makes it, and the one that widens its heads."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from statistics import fmean
from typing import Any

import gymnasium as gym
import pytest
import torch

from benchmarks.trace_learning import HELD_OUT
from gamespiel.agents.models.loading import TINY, ModelSettings, load_base, load_tokenizer
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.sampling.noise import DrawnNoise
from gamespiel.agents.tokens.codec import ChatCodec
from gamespiel.config import resolve
from scripts.make_tiny import GAMES, TRACES, Recipe, make, random_play, trace_row
from scripts.widen_heads import main as widen
from tests.agents.toys import make_policy, masks_of
from tests.gamespiel.runs import mark_samples

#: The least probability of legal answers without a mask: nearly 1 in the smallest games, high elsewhere, and
#: less if ids are many and change with every move.
LEGAL_MASS = {"leduc_poker": 0.99, "kuhn_poker": 0.99, "tic_tac_toe": 0.85, "blackjack": 0.95}
LEGAL_MASS |= {"amazons": 0.5, "othello": 0.45, "backgammon": 0.45, "clobber": 0.35, "chess": 0.15}


ACTIONS = 5000
"""More than any game has."""


@pytest.fixture(scope="module")
def policy() -> LLMPolicy:
    return make_policy(ACTIONS)


@pytest.mark.parametrize("game", mark_samples(GAMES, ("leduc_poker", "hex")))
def test_it_answers_every_game_with_what_is_legal(game: str, policy: LLMPolicy) -> None:
    """Most of what it would say without a mask is legal, in games with short prompts it was not made from."""
    states = random_play(game, states=4 * 32, episodes=200, seed=12345)
    states = [state for state in states if len(policy.codec.encode_prompt(state.text)) <= 400][:32]
    masks = masks_of([state.legal for state in states], ACTIONS)
    torch.manual_seed(0)
    noise = DrawnNoise.for_batch(lambda size: torch.rand(size).double().numpy(), len(states))
    drawn = policy.decide([state.text for state in states], masks, noise)
    assert fmean(float(decision.legal_mass or 0) for decision in drawn) > LEGAL_MASS.get(game, 0.6)


def test_it_knows_no_strategy_and_no_trace_that_anybody_trains_or_is_measured_on(policy: LLMPolicy) -> None:
    """Every legal answer about equally likely: no probability is further than a tenth from uniform."""
    states = random_play("leduc_poker", states=200, episodes=100, seed=7)
    answers = policy.distribution([state.text for state in states], [state.legal for state in states])
    assert max(abs(p - 1 / len(answer)).max() for p, answer in zip(answers, answers, strict=True)) < 0.1
    ((first, last),) = TRACES["task_ids"]
    taken = [*resolve("tiny-trace").env.task_ids, HELD_OUT]
    assert all(last < low or high < first for low, high in taken)  # type: ignore[misc]


@pytest.mark.trains
@pytest.mark.sample
def test_it_has_read_what_programs_print(policy: LLMPolicy) -> None:
    """The output of a program it has not read surprises less beside its own program than beside another.

    By 0.3 nats a token or more, on average over programs.
    """
    env: Any = gym.make("CodeTrace-v0", **TRACES | {"task_ids": [(0, 99_999)]})
    codec, episodes = policy.codec, []
    for seed in range(40):
        asked, _ = env.reset(seed=seed)
        episodes.append((asked, env.step("")[0]))

    def surprise(asked: str, ending: str) -> float:
        """Nats a token of how the episode ended."""
        row = trace_row(asked, ending, codec)
        with torch.no_grad():
            logits = policy.model(input_ids=torch.tensor([row.prompt])).logits[0, row.close - 1 : -1]
        return float(torch.nn.functional.cross_entropy(logits, torch.tensor(row.prompt[row.close :])))

    own_nats = sum(surprise(asked, ending) for asked, ending in episodes)
    others = sum(surprise(episodes[i - 1][0], ending) for i, (_, ending) in enumerate(episodes))
    assert own_nats < others - 0.3 * len(episodes)


def test_what_ships_is_what_the_recipe_says() -> None:
    record = json.loads((TINY / "made.json").read_text())
    assert record["recipe"] == dataclasses.asdict(Recipe())
    base = load_base(ModelSettings(), "cpu", seed=0)
    assert record["parameters"] == sum(p.numel() for p in base.parameters())
    assert 100_000 <= record["parameters"] <= 1_000_000


@pytest.mark.trains
@pytest.mark.sample
def test_the_script_makes_a_model_that_loads(tmp_path: Path) -> None:
    recipe = Recipe(
        traces=5, states_per_game=20, vocab_size=300, steps=2, batch_tokens=600, hidden_size=16, head_dim=4
    )
    record = make(recipe, tmp_path, games=("kuhn_poker", "hex"))
    settings = ModelSettings(str(tmp_path))
    base, codec = load_base(settings, "cpu", seed=0), ChatCodec(load_tokenizer(settings))
    assert sum(p.numel() for p in base.parameters()) == record["parameters"]
    assert base.config.vocab_size == len(codec.tokenizer) == 300


def test_logits_and_tokens_are_the_embedded_models(tmp_path: Path) -> None:
    widen([str(tmp_path)])
    tiny, wide = ModelSettings("tiny", dtype="float32"), ModelSettings(str(tmp_path), dtype="float32")
    tokens = load_tokenizer(tiny)("You are player 0. Your card is 2. Legal: 0, 1").input_ids
    assert load_tokenizer(wide)("You are player 0. Your card is 2. Legal: 0, 1").input_ids == tokens
    with torch.no_grad():
        logits, other = (load_base(one, "cpu", 0)(torch.tensor([tokens * 3])).logits for one in (tiny, wide))
    assert load_base(wide, "cpu", 0).config.head_dim == 32
    assert (logits - other).abs().max() < 1e-4 < logits.std()
