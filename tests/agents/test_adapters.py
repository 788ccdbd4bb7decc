"""Adapters: where they go, what they begin as, and the type in which they compute."""

from __future__ import annotations

import copy
import logging
from typing import Any

import pytest
import torch
from peft.tuners.lora.layer import Linear as PeftLinear
from torch import nn
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
from gamespiel.agents.models.loading import ModelSettings, load_base
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
    # PEFT refuses some; the rest is named.
    said = refused(MAMBA, "in_proj", "out_proj")
    assert said.startswith("lora.target_modules: 'in_proj', 'out_proj' were given, which PEFT refuses (")
    assert said.endswith('all layers: ["dt_proj", "in_proj", "x_proj"]')
    adapted(MAMBA, "dt_proj", "in_proj", "x_proj")


def test_gpt2s_transposed_layers_count() -> None:
    said = refused(GPT2, "q_proj")
    assert "attention: c_attn, c_proj; feed-forward: c_fc, c_proj; head" in said
    model = adapted(GPT2, "c_attn", "c_fc", "c_proj")
    names = {name.split(".lora_A")[0] for name, p in model.named_parameters() if p.requires_grad}
    assert {name.rpartition(".")[2] for name in names if "lora_B" not in name} == {"c_attn", "c_fc", "c_proj"}
    assert_merged_say_the_same(model)


def test_a_tied_head_is_refused_and_an_own_one_merges() -> None:
    """PEFT would merge the head's adapters into the embedding too."""
    said = refused(qwen(tied=True), "q_proj", "lm_head")
    assert "'lm_head' shares its weights with the embedding" in said and "head, tied to the embedding" in said
    assert_merged_say_the_same(adapted(qwen(tied=False), "q_proj", "lm_head"))


def test_weights_that_are_passed_by_are_named(caplog: pytest.LogCaptureFixture) -> None:
    """Qwen3-Next's routed experts lie in two parameters per layer; its shared expert is linear modules."""
    gated = ("gate_proj", "up_proj", "down_proj")
    with caplog.at_level(logging.WARNING, "gamespiel.agents"):
        adapted(qwen(tied=False), "q_proj", *gated)
        assert caplog.records == []
        adapted(NEXT, "q_proj")
        adapted(NEXT, "q_proj", *gated)
    routed, shared = (record.getMessage() for record in caplog.records)
    total = AutoModelForCausalLM.from_config(NEXT).num_parameters()
    for said, count, weights in ((routed, 4, 2 * 4 * 3 * 16 * 32), (shared, 6, 2 * 3 * 16 * 32)):
        assert said.startswith(f"{count} weights have no adapters, {100 * weights / total:.0f}% of the model")
    assert "shared_expert" in shared


def test_experts_that_peft_can_adapt_are_adapted() -> None:
    """Gates and ways up are one parameter of Mixtral's 4 experts: rank 4 * 2 * 2; ways down have 4 * 2."""
    model = adapted(MIXTRAL, "q_proj", "w1", "w2", "w3")
    ranks = [p.shape[0] for name, p in model.named_parameters() if ".experts." in name and "lora_A" in name]
    assert sorted(ranks) == [8, 8, 16, 16]
    assert "'gate_proj' was given" in refused(MIXTRAL, "q_proj", "gate_proj")


# -- what they compute ---------------------------------------------------------------------------------------


IDS = torch.randint(20, 200, (3, 17), generator=torch.Generator().manual_seed(0))


def load_embedded(dtype: str = "float32", plain: bool = False, seed: int = 0, **settings: Any) -> Any:
    """Returns the embedded model with random adapters; ``plain``: as PEFT computes them."""
    base = load_base(ModelSettings(dtype=dtype), "cpu", seed=0)
    model = add_adapters(base, LoraSettings(**{"r": 4, **settings}), seed).eval()
    torch.manual_seed(0)
    for layer in layers_of(model):
        layer.lora_B.default.weight.data.normal_(0, 0.1)
        if plain:
            layer.cast_input_dtype_enabled = True
            layer.lora_A.default.__class__ = layer.lora_B.default.__class__ = nn.Linear
    return model


@torch.no_grad()
def logits_of(model: Any) -> torch.Tensor:
    return model(input_ids=IDS).logits


def layers_of(model: nn.Module) -> list[Any]:
    return [module for module in model.modules() if hasattr(module, "lora_A")]


def gradients(model: Any) -> dict[str, torch.Tensor]:
    model.zero_grad()
    model(input_ids=IDS).logits.float().log_softmax(-1)[..., 25].mean().backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.requires_grad}


def test_adapters_begin_as_the_identity() -> None:
    model = add_adapters(load_base(ModelSettings(), "cpu", 0), LoraSettings(r=2, lora_alpha=4), seed=0)
    assert torch.equal(logits_of(model), logits_of(load_base(ModelSettings(), "cpu", 0)))
    config = model.peft_config["default"]
    assert (config.r, config.lora_alpha, config.lora_dropout) == (2, 4, 0.0)
    first, again, other = (layers_of(load_embedded(seed=seed))[0].lora_A.default.weight for seed in (0, 0, 1))
    assert torch.equal(first, again) and not torch.equal(first, other)
    # The largest layer is the output head, of 64 × 1,536. A rank is refused before it takes memory.
    for rank in (1537, 10**8):
        with pytest.raises(ModelError, match=rf"lora\.r: {rank} was given, allowed: 1 … 1536"):
            add_adapters(load_base(ModelSettings(), "cpu", seed=0), LoraSettings(r=rank), seed=0)


def test_adapters_compute_in_bfloat16_with_float32_weights_and_in_float16_as_peft_does() -> None:
    layer = layers_of(load_embedded("bfloat16"))[0]
    a, b = layer.lora_A.default.weight, layer.lora_B.default.weight
    assert a.dtype == b.dtype == torch.float32 and b.count_nonzero()
    x = torch.randn(5, a.shape[1], generator=torch.Generator().manual_seed(1)).bfloat16()
    with torch.no_grad():
        expected = layer.base_layer(x) + (x @ a.bfloat16().T) @ b.bfloat16().T * (32 / 4)
        assert torch.equal(layer(x), expected)
    half, plain = load_embedded("float16"), load_embedded("float16", plain=True)
    assert torch.equal(logits_of(half), logits_of(plain))
    assert {p.dtype for p in half.parameters() if p.requires_grad} == {torch.float32}


def test_what_a_small_layer_computes_and_learns_is_what_peft_does() -> None:
    ours = load_embedded(r=16, lora_alpha=8)
    plain = copy.deepcopy(ours)
    for layer in layers_of(plain):
        layer.__class__ = PeftLinear
    one, other = logits_of(ours), logits_of(plain)
    assert (one - other).norm() < 1e-6 * other.norm() and not torch.equal(one, other)
    grads, expected = gradients(ours), gradients(plain)
    assert grads.keys() == expected.keys()
    for name, gradient in expected.items():
        assert (grads[name] - gradient).norm() < 1e-5 * gradient.norm(), name
    with ours.disable_adapter():
        assert torch.equal(logits_of(ours), logits_of(load_base(ModelSettings(), "cpu", 0)))
    ours.merge_adapter()
    assert torch.allclose(logits_of(ours), one, atol=1e-4)
