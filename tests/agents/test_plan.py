"""Architectures without weights, and the memory plan: compared with models, autograd and counted tensors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from gamespiel.agents.engines import Budgets, make_engine, tree_attention
from gamespiel.agents.models import memory_plan as planned
from gamespiel.agents.models import quantization
from gamespiel.agents.models.adapters import LoraSettings, add_adapters
from gamespiel.agents.models.architectures import (
    FAMILIES,
    KNOWN,
    Architecture,
    architecture_of,
    from_config,
)
from gamespiel.agents.models.loading import DTYPES, TINY, ModelError
from gamespiel.agents.models.memory_plan import (
    Load,
    MemoryPlan,
    bytes_kept_per_token,
    cast_adapters,
    plan,
    weights,
)
from gamespiel.agents.models.quantization import Quantization
from gamespiel.config import resolve
from gamespiel.training.planning import load_of
from tests.agents import ggufs
from tests.agents.families import parametrize_families
from tests.agents.live import EfficientAttention, Live

SMALL = {
    "vocab_size": 50, "hidden_size": 128, "intermediate_size": 256, "num_attention_heads": 4, "head_dim": 32,
    "num_key_value_heads": 4, "tie_word_embeddings": True,
}  # fmt: skip
"""Keys and values as wide as the hidden states: then every module's weights are whole blocks of 64 * 256."""


def model_of(
    family: str, layers: int, dtype: str, bits: int | None, **sizes: int
) -> tuple[Any, Architecture]:
    keys = SMALL | sizes | {"num_hidden_layers": layers}
    model = AutoModelForCausalLM.from_config(CONFIG_MAPPING[family](**keys)).to(DTYPES[dtype])
    model.requires_grad_(False)
    if bits is not None:
        model = quantization.quantise(model, Quantization(bits, True, DTYPES[dtype]), torch.device("cpu"))
    return model.eval(), from_config({"model_type": family, **keys}, family)


# -- activations ---------------------------------------------------------------------------------------------


def count_kept_bytes(model: Any, tokens: int) -> int:
    """Returns the bytes that autograd keeps of a forward, each storage counted once, without parameters."""
    engine = make_engine(add_adapters(model, LoraSettings(r=4), 0), "shared")
    parameters = {t.untyped_storage().data_ptr() for t in [*model.parameters(), *model.buffers()]}
    tensors: dict[int, torch.Tensor] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        tensors.setdefault(tensor.untyped_storage().data_ptr(), tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        engine.read([tuple(i % 50 for i in range(tokens))] * 2, [0], [0])  # twice, or it is read alone
    return sum(t.untyped_storage().nbytes() for pointer, t in tensors.items() if pointer not in parameters)


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float16", "bfloat16 4", "bfloat16 8"])
@parametrize_families(("qwen2", "qwen3"), ("llama", "gemma3_text"))
def test_a_layer_keeps_what_the_formula_says(family: str, kind: str) -> None:
    """The third layer's share, of a row of one tile: each token gathers the keys of ``TILE`` tokens."""
    dtype, _, bits = kind.partition(" ")
    sizes = {"num_key_value_heads": 2}
    models = [model_of(family, layers, dtype, int(bits) if bits else None, **sizes) for layers in (2, 3)]
    fewer, more = (count_kept_bytes(model, planned.TILE) for model, _ in models)
    load = Load(models[0][1], dtype, int(bits) if bits else None, rank=4, prompt_tokens=0)
    expected = planned.TILE * sum(bytes_kept_per_token(load).values()) + cast_adapters(load)
    if family == "gemma3_text":
        expected += 4 * (4 * 128 + 2 * 32)  # 1 + the weight of each norm, in float32
    assert more - fewer == expected


def test_adapters_on_fewer_modules_keep_fewer_inputs() -> None:
    """Without k, o, gate, up and down, q and v still share their input; the others' are gone."""
    architecture = from_config({"model_type": "llama", "num_hidden_layers": 2, **SMALL}, "llama")
    everywhere = bytes_kept_per_token(Load(architecture))
    two = bytes_kept_per_token(Load(architecture, targets=("q_proj", "v_proj")))
    gone = {name: everywhere[name] - two[name] for name in everywhere if everywhere[name] != two[name]}
    assert gone == {
        "adapters": 2 * 16 * 5,
        "output of attention": 2 * 128,
        "inputs of the feed-forward part": 2 * 128,
        "product of the feed-forward part": 2 * 256,
    }


# -- weights and files ---------------------------------------------------------------------------------------


def stored(module: nn.Module, bits: int) -> int:
    """Returns the bytes of a quantised module, without tables of constants that do not depend on its size."""
    weight: Any = module.weight
    if bits == 8:
        return int(weight.nbytes + weight.SCB.nbytes)
    state = weight.quant_state
    nested = state.state2.absmax.nbytes if state.nested else 0
    return int(weight.nbytes + state.absmax.nbytes + nested)


@pytest.mark.parametrize(("bits", "nested"), [(4, True), (4, False), (8, False)])
def test_quantised_weights_have_the_planned_bytes(bits: int, nested: bool) -> None:
    model, architecture = model_of("qwen2", 2, "bfloat16", None)
    model = quantization.quantise(model, Quantization(bits, nested, torch.bfloat16), torch.device("cpu"))
    linears = {name: m for name, m in model.named_modules() if isinstance(m, nn.Linear) and name != "lm_head"}
    total = sum(stored(module, bits) for module in linears.values())
    held = {id(module.weight) for module in linears.values()}
    total += sum(p.nbytes for p in model.parameters() if id(p) not in held)
    assert weights(Load(architecture, bits=bits, nested=nested)) == total


# -- the sum -------------------------------------------------------------------------------------------------


def test_the_peak_is_the_larger_of_updating_and_playing() -> None:
    parts = MemoryPlan(
        weights=100, adapters=1, gradients=1, optimizer=2, activations=50,
        activations_plain=50, activations_checkpointed=5, backward=7, head=9, sampling=3, cache=40,
        sampling_head=2, context=6, on_disk=4, kept_on_disk=16,
    )  # fmt: skip
    assert parts.always == 110
    assert parts.updating == 110 + 50 + 9
    assert parts.playing == 110 + 40 + 3
    assert parts.peak == 169
    assert parts.fits(169 / 0.9 + 1e-9) and not parts.fits(187)
    assert replace(parts, activations=5).peak == 153


def test_qwen3_4b_by_hand() -> None:
    """36 layers of 2,560 × 9,728; 32 heads of 128 with 8 of keys; 151,936 words, tied.

    Checkpointing keeps the layers' inputs and one layer.
    """
    load = Load(architecture_of("Qwen/Qwen3-4B"), gradient_checkpointing=True, tokens_per_backward=1000)
    memory, plain = plan(load), plan(replace(load, gradient_checkpointing=False))
    assert memory.weights == 2 * 4_022_468_096
    trained = 33_030_144 + 2561
    parts = (memory.adapters, memory.gradients, memory.optimizer, memory.on_disk, memory.kept_on_disk)
    assert parts == (4 * trained, 4 * trained, 8 * trained, 12 * trained, 4 * 12 * trained)
    assert memory.cache == 2 * 2 * 1024 * (16_384 * 36 + 256 * 512)
    norms, heads = 2 * (4 * 2560 + 4), 4 * (4096 + 1024 + 40)
    adapters = 2 * (16 * 7 + 2560 + 4096 + 2560 + 9728)
    attention = 2 * 2 * 4096 + 4 * 32 + 2 * 2 * 1024 * 5 + 2 * 640 * 4  # 640 keys: five tiles of 128
    layer = norms + heads + adapters + attention + 3 * 2 * 9728
    ends = 4 * 2560 + 2 * 2 * 128 + 640 * (8 + 1 + 4)
    cast = 2 * 33_030_144 // 36  # one layer's adapters in bfloat16
    assert memory.activations == 1000 * (36 * 2 * 2560 + layer + ends) + cast
    assert plain.activations == plain.activations_plain == 1000 * (36 * layer + ends) + 36 * cast


# -- counted on a GPU's tensors ------------------------------------------------------------------------------


@pytest.mark.memory
@pytest.mark.parametrize("preset", ["qwen3-4b-12gb", "qwen2.5-3b-24gb"])
def test_tensors_of_a_gpu_stay_within_the_plan(preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six layers of the preset's model, without data, and with what CUDA's attention allocates.

    The plan may be above by a third: it counts the last layer whole, and adds the peaks of that layer's
    forward and of the way back.
    """
    config = resolve(preset)
    load = load_of(config)
    load = replace(load, architecture=replace(load.architecture, layers=6))
    model: Any = built({**KNOWN[config.model.model_name], "num_hidden_layers": 6})
    model = add_adapters(model.to(torch.bfloat16).requires_grad_(False).eval(), LoraSettings(), 0)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.grad = torch.zeros_like(parameter)
    monkeypatch.setattr(
        tree_attention,
        "scaled_dot_product_attention",
        lambda q, k, v, attn_mask, scale: EfficientAttention.apply(q, k, v, attn_mask),
    )
    engine = make_engine(model, "shared", Budgets(10**6), gradient_checkpointing=load.gradient_checkpointing)
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    held = [*model.parameters(), *model.buffers(), *gradients]
    memory = plan(load)

    prompts = prompts_of(load.tokens_per_backward, load.prompt_tokens)
    rows, last = list(range(len(prompts))), [load.prompt_tokens - 1] * len(prompts)
    with Live(held) as live:
        engine.logits(engine.read(prompts, rows, last)[: load.rows_backward]).logsumexp(-1).sum().backward()
    expected = memory.activations + max(memory.backward, memory.head)
    assert live.peak <= expected <= 4 / 3 * live.peak

    prompts = prompts_of(load.tokens_per_forward, load.prompt_tokens)
    with torch.no_grad(), Live(held) as live:
        _, prefix = engine.prefill(prompts, cache=True)
        further = engine.extend(prefix, list(range(len(prompts))), [(7,)] * len(prompts))
        engine.logits(further).logsumexp(-1)
    expected = memory.cache + max(memory.sampling, memory.sampling_head)
    assert live.peak <= expected <= 4 / 3 * live.peak


def prompts_of(tokens: int, length: int, tail: int = 64) -> list[tuple[int, ...]]:
    """Returns prompts of a length whose tree has that many tokens: ``tail`` of each, the others shared."""
    beginning = [1] * (length - tail)
    return [(*beginning, i, *[3] * (tail - 1)) for i in range((tokens - len(beginning)) // tail)]


# -- architectures -----------------------------------------------------------------------------------------


PARAMETERS = {
    "HuggingFaceTB/SmolLM2-135M-Instruct": 134_515_008,
    "Qwen/Qwen2.5-0.5B-Instruct": 494_032_768,
    "Qwen/Qwen2.5-1.5B-Instruct": 1_543_714_304,
    "Qwen/Qwen2.5-3B-Instruct": 3_085_938_688,
    "Qwen/Qwen3-0.6B": 596_049_920,
    "Qwen/Qwen3-1.7B": 1_720_574_976,
    "Qwen/Qwen3-4B": 4_022_468_096,
    "Qwen/Qwen3-32B": 32_762_123_264,
    "meta-llama/Llama-3.2-1B-Instruct": 1_235_814_400,
    "meta-llama/Llama-3.2-3B-Instruct": 3_212_749_824,
    "google/gemma-3-1b-it": 999_885_952,
}
"""As the models' own weights have them."""


def built(config: dict[str, Any]) -> Any:
    """Returns the model without memory for its weights."""
    keys = {key: value for key, value in config.items() if key not in ("model_type", "dtype")}
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(CONFIG_MAPPING[config["model_type"]](**keys))


def test_known_models_have_the_parameters_of_their_weights_and_others_are_named(tmp_path: Path) -> None:
    assert {name: architecture_of(name).parameters for name in KNOWN} == PARAMETERS
    tiny = architecture_of("tiny")
    assert (tiny.parameters, tiny.dtype) == (196_992, "float32")
    assert tiny == architecture_of(str(TINY))
    with pytest.raises(ModelError, match=r"'Qwen/Qwen3-4C' is not known here.*'Qwen/Qwen3-4B'\?"):
        architecture_of("Qwen/Qwen3-4C")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen9"}))
    with pytest.raises(ModelError, match=r"model_type 'qwen9'; allowed in a plan: llama, .*'qwen"):
        architecture_of(str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama", "hidden_size": 8}))
    with pytest.raises(ModelError, match=r"a configuration without 'num_attention_heads'"):
        architecture_of(str(tmp_path))


SHORT = {
    "vocab_size": 50, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3,
    "num_attention_heads": 4, "num_key_value_heads": 2,
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_what_a_configuration_leaves_out_is_the_familys_default(family: str) -> None:
    variants: list[dict[str, Any]] = [{}, {"tie_word_embeddings": False}, {"num_key_value_heads": 1}]
    if family not in ("qwen2", "mistral"):  # these do not read the key
        variants.append({"attention_bias": True})
    if family == "llama":
        variants.append({"mlp_bias": True})
    for variant in variants:
        config = {"model_type": family, **SHORT, **variant}
        counted = sum(p.numel() for p in built(config).parameters())
        assert from_config(config, family).parameters == counted, variant


def test_the_metadata_of_a_gguf_file(tmp_path: Path) -> None:
    families = (
        ("llama", "llama", False),
        ("qwen2", "qwen2", True),
        ("qwen3", "qwen3", False),
        ("gemma3", "gemma3_text", True),
    )
    for kind, family, tied in families:
        path = ggufs.write(tmp_path / f"{kind}.gguf", kind, kv_heads=2, tied=tied)
        config = {
            "model_type": family, "vocab_size": len(ggufs.vocabulary()), "hidden_size": ggufs.HIDDEN,
            "intermediate_size": ggufs.INNER, "num_hidden_layers": ggufs.LAYERS,
            "num_attention_heads": ggufs.HEADS, "num_key_value_heads": 2, "tie_word_embeddings": tied,
            "dtype": "bfloat16",
        }  # fmt: skip
        assert architecture_of(str(path)) == from_config(config, "x")
