"""``lora.target_modules``: which modules of which models take adapters, and what is said of the others."""

from __future__ import annotations

import logging
import re
from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    GPT2Config,
    MambaConfig,
    MixtralConfig,
    OPTConfig,
    PretrainedConfig,
    Qwen2Config,
    Qwen3NextConfig,
)

from gamespiel.agents.models.adapters import LoraSettings, add_adapters
from gamespiel.agents.models.weights import ModelError

SIZES = {"vocab_size": 64, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
GPT2 = GPT2Config(
    vocab_size=64, n_embd=32, n_layer=2, n_head=2, n_positions=32, bos_token_id=0, eos_token_id=0
)
MAMBA = MambaConfig(vocab_size=64, hidden_size=32, num_hidden_layers=2, state_size=4)
OPT = OPTConfig(**SIZES, ffn_dim=64, word_embed_proj_dim=32)
NEXT = Qwen3NextConfig(
    **SIZES, intermediate_size=64, num_key_value_heads=1, head_dim=16, layer_types=["full_attention"] * 2,
    num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, shared_expert_intermediate_size=16,
)  # fmt: skip
MIXTRAL = MixtralConfig(**SIZES, intermediate_size=64, num_key_value_heads=1, num_local_experts=4)


def qwen(tied: bool) -> Qwen2Config:
    return Qwen2Config(**SIZES, intermediate_size=64, num_key_value_heads=1, tie_word_embeddings=tied)


def adapted(config: PretrainedConfig, *targets: str) -> Any:
    torch.manual_seed(0)
    base = AutoModelForCausalLM.from_config(config).requires_grad_(False).eval()
    return add_adapters(base, LoraSettings(r=2, target_modules=targets), seed=0)


def assert_merged_say_the_same(model: Any) -> None:
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.1)
        expected = model(input_ids=ids).logits
        assert torch.allclose(model.merge_and_unload()(input_ids=ids).logits, expected, atol=1e-5)


def refused(config: PretrainedConfig, *targets: str) -> str:
    with pytest.raises(ModelError) as caught:
        adapted(config, *targets)
    return str(caught.value)


def test_the_error_names_the_key_and_the_models_own_layers_by_role() -> None:
    assert refused(OPT, "q_proj", "o_proj", "down_proj") == (
        "lora.target_modules: 'o_proj', 'down_proj' were given; this model (opt) has attention: k_proj, "
        "v_proj, q_proj, out_proj; feed-forward: fc1, fc2; head, tied to the embedding: lm_head; all layers: "
        '["fc1", "fc2", "k_proj", "out_proj", "q_proj", "v_proj"]'
    )
    assert refused(OPT, "ffc2").endswith("; did you mean 'fc2'?")
    assert refused(OPT).startswith("lora.target_modules: none were given; this model (opt) has attention")


def test_gpt2s_transposed_layers_count() -> None:
    said = refused(GPT2, "q_proj")
    assert "attention: c_attn, c_proj; feed-forward: c_fc, c_proj; head" in said
    model = adapted(GPT2, "c_attn", "c_fc", "c_proj")
    names = {name.split(".lora_A")[0] for name, p in model.named_parameters() if p.requires_grad}
    assert {name.rpartition(".")[2] for name in names if "lora_B" not in name} == {"c_attn", "c_fc", "c_proj"}
    assert_merged_say_the_same(model)


def test_what_peft_refuses_is_an_error_with_the_rest_of_the_layers() -> None:
    said = refused(MAMBA, "in_proj", "out_proj")
    assert said.startswith("lora.target_modules: 'in_proj', 'out_proj' were given, which PEFT refuses (")
    layers = re.search(r"all layers: (.*)$", said)
    assert layers is not None and layers[1] == '["dt_proj", "in_proj", "x_proj"]'
    adapted(MAMBA, "dt_proj", "in_proj", "x_proj")


def test_a_tied_head_is_refused_and_an_own_one_merges() -> None:
    """PEFT would merge the head's adapters into the embedding too."""
    said = refused(qwen(tied=True), "q_proj", "lm_head")
    assert "'lm_head' shares its weights with the embedding" in said and "head, tied to the embedding" in said
    assert_merged_say_the_same(adapted(qwen(tied=False), "q_proj", "lm_head"))


def warnings_of(caplog: pytest.LogCaptureFixture, config: PretrainedConfig, *targets: str) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.WARNING, "gamespiel.agents"):
        adapted(config, *targets)
    return [record.getMessage() for record in caplog.records]


def test_weights_that_are_passed_by_are_named(caplog: pytest.LogCaptureFixture) -> None:
    """Qwen3-Next's routed experts lie in two parameters per layer; its shared expert is linear modules."""
    gated = ("gate_proj", "up_proj", "down_proj")
    assert warnings_of(caplog, qwen(tied=False), "q_proj", *gated) == []
    total = AutoModelForCausalLM.from_config(NEXT).num_parameters()
    (said,) = warnings_of(caplog, NEXT, "q_proj")
    experts = 2 * (4 * 2 * 16 * 32 + 4 * 16 * 32)
    assert said.startswith(f"4 weights have no adapters, {100 * experts / total:.0f}% of the model")
    (said,) = warnings_of(caplog, NEXT, "q_proj", *gated)
    shared = 2 * 3 * 16 * 32
    assert said.startswith(f"6 weights have no adapters, {100 * shared / total:.0f}% of the model")
    assert "shared_expert" in said


def test_experts_that_peft_can_adapt_are_adapted() -> None:
    """Gates and ways up are one parameter of Mixtral's 4 experts: rank 4 * 2 * 2; ways down have 4 * 2."""
    said = refused(MIXTRAL, "q_proj", "w1")
    assert "PEFT refuses (Cannot convert PEFT target(s) w1 without also targeting w3 because" in said
    model = adapted(MIXTRAL, "q_proj", "w1", "w2", "w3")
    ranks = [p.shape[0] for name, p in model.named_parameters() if ".experts." in name and "lora_A" in name]
    assert sorted(ranks) == [8, 8, 16, 16]
    assert "'gate_proj' was given" in refused(MIXTRAL, "q_proj", "gate_proj")
