"""Models that cannot work are refused by name when a policy is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
import torch
from transformers import (
    BertConfig,
    GPT2Config,
    MambaConfig,
    Phi3Config,
    PretrainedConfig,
    Qwen2Config,
)

from gamespiel.agents.engines import ContextLengthError, positions_of
from gamespiel.agents.models.weights import ModelError
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.tokens.codec import PromptLengthError
from task_gym.wrappers import NamedText
from tests.agents.families import chatml, gemma, gemma3
from tests.agents.toys import TEXT, masks_of, same_noise

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "initializer_range": 0.1}
GATED = SMALL | {"intermediate_size": 64, "num_key_value_heads": 1}
PROMPT = 19
"""Tokens of a prompt of no text: <|im_start|>user\\n 6, <|im_end|>\\n 2, <|im_start|>assistant\\n 11."""


def saved(folder: Path, config: PretrainedConfig, tokenizer: Any = None) -> dict[str, Any]:
    """Writes a configuration with a tokenizer; returns the settings of a model drawn for it."""
    own = chatml() if tokenizer is None else tokenizer
    own.save_pretrained(folder)
    config.save_pretrained(folder)
    return {"model_name": str(folder), "random_weights": True}


def gpt2(positions: int, vocabulary: int = 300) -> GPT2Config:
    return GPT2Config(
        vocab_size=vocabulary, n_positions=positions, n_embd=32, n_layer=2, n_head=2,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip


def policy(model: dict[str, Any], *targets: str, actions: int = 130, **settings: Any) -> LLMPolicy:
    lora = {"r": 2, **({"target_modules": targets} if targets else {})}
    space = gym.spaces.Discrete(actions) if settings.get("decode") != "text" else gym.spaces.Text(10_000)
    return LLMPolicy(TEXT, space, lambda left: 1e-3, model=model, lora=lora, **settings)


@pytest.mark.parametrize(
    ("config", "positions"),
    [
        (Qwen2Config(max_position_embeddings=32_768), 32_768),
        # Qwen's cards tell to add these lines for 131,072 tokens, and leave the other number as it is.
        (
            Qwen2Config(
                max_position_embeddings=32_768,
                rope_parameters={
                    "rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768,
                    "rope_theta": 1e6,
                },
            ),
            131_072,
        ),
        (
            Qwen2Config(
                max_position_embeddings=2_048,
                rope_parameters={"rope_type": "linear", "factor": 2.0, "rope_theta": 1e4},
            ),
            4_096,
        ),
        (Phi3Config(max_position_embeddings=131_072, original_max_position_embeddings=4_096), 131_072),
        (GPT2Config(n_positions=1_024), 1_024),
        (gemma3(vocab_size=300, max_position_embeddings=512), 512),
        (MambaConfig(), None),
    ],
    ids=lambda value: value.model_type if isinstance(value, PretrainedConfig) else str(value),
)  # fmt: skip
def test_positions_are_those_of_the_configuration(config: PretrainedConfig, positions: int | None) -> None:
    assert positions_of(config) == positions


def test_a_prompt_and_its_answer_fit_the_positions(tmp_path: Path) -> None:
    """64 positions: actions of up to three digits leave 61 for a prompt, and 61 are read."""
    model = policy(saved(tmp_path, gpt2(64)), "c_attn")
    masks = masks_of([(7, 129)], 130)
    longest = "x" * (61 - PROMPT)
    drawn = model.decide([longest], masks, same_noise(0.9, 1))
    assert model.answer_of(drawn[0]).action in (7, 129)
    _, log_probs, _ = model.evaluate_actions([longest], torch.tensor([129]), masks)
    assert torch.isfinite(log_probs).all()
    with pytest.raises(PromptLengthError, match=r"of 43 characters has 62 tokens .* at most 61: "):
        model.decide([longest + "x"], masks, same_noise(0.9, 1))
    with pytest.raises(PromptLengthError, match=r"^a prompt has 62 tokens"):
        model.prompts(torch.ones(1, 62, dtype=torch.int32))


def test_a_reply_needs_positions_too(tmp_path: Path) -> None:
    settings = saved(tmp_path, gpt2(64))
    model = policy(settings, "c_attn", decode="text", max_new_tokens=40)
    assert len(model.prompts(["x" * (24 - PROMPT)])[0]) == 24
    with pytest.raises(PromptLengthError, match=r"at most 24: .* 40 are for the answer"):
        model.prompts(["x" * (25 - PROMPT)])
    with pytest.raises(PromptLengthError, match=r"19 tokens .* at most 14"):
        policy(settings, "c_attn", decode="text", max_new_tokens=50)


def test_a_name_longer_than_the_positions_is_an_error(tmp_path: Path) -> None:
    model = policy(saved(tmp_path, gpt2(64)), "c_attn", answer="name", actions=3)
    text = NamedText("x", ["a" * 50 + "b", "a" * 50 + "c"])
    with pytest.raises(ContextLengthError, match=r"of 70 tokens .* at most 64, the model's positions"):
        model.decide([text], masks_of([(0, 1)], 3), same_noise(0.9, 1))


def test_a_tokenizer_larger_than_the_embedding(tmp_path: Path) -> None:
    more = len(chatml()) - 250 - 1  # <|endoftext|> is in no prompt and ends no answer
    message = rf"an embedding of 250 tokens and a tokenizer with {more} more, the first of them .* id 250;"
    with pytest.raises(ModelError, match=message):
        policy(saved(tmp_path, gpt2(64, vocabulary=250)), "c_attn")


def test_a_control_token_that_no_text_gives_needs_no_embedding(tmp_path: Path) -> None:
    """Gemma 3's tokenizer ends with one for images, which its text models lack."""
    own = gemma()
    known = len(own)
    own.add_special_tokens({"additional_special_tokens": ["<image_soft_token>"]})
    model = saved(tmp_path, Qwen2Config(vocab_size=known, **GATED), own)
    assert policy(model, "q_proj").prompts(["<image_soft_token>"])[0] < (known,) * 1000


def test_a_bidirectional_model_is_refused(tmp_path: Path) -> None:
    """BERT reads both ways, unless its configuration makes a decoder of it."""
    config = BertConfig(vocab_size=300, intermediate_size=64, is_decoder=False, **SMALL)
    with pytest.raises(ModelError, match=r"is bidirectional \(bert\)"):
        policy(saved(tmp_path / "both", config), "query")
    config.is_decoder = True
    assert policy(saved(tmp_path / "left", config), "query").decode == "choice"
