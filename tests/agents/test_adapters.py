"""Adapters: where they go, what they begin as, and the type in which they compute."""

import copy
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from gamespiel.agents.models.adapters import LoraSettings, add_adapters
from gamespiel.agents.models.loading import DTYPES, TINY, ModelError, ModelSettings, load_base

IDS = torch.randint(20, 200, (3, 17), generator=torch.Generator().manual_seed(0))


def adapted(dtype: str, plain: bool = False) -> Any:
    """Returns the embedded model with random adapters; ``plain``: as PEFT computes them."""
    base = load_base(ModelSettings(dtype=dtype), "cpu", seed=0)
    model = add_adapters(base, LoraSettings(r=4), seed=0).eval()
    torch.manual_seed(0)
    for layer in layers_of(model):
        layer.lora_B.default.weight.data.normal_(0, 0.1)
        if plain:
            layer.cast_input_dtype_enabled = True
            layer.lora_A.default.__class__ = layer.lora_B.default.__class__ = nn.Linear
    return model


def layers_of(model: nn.Module) -> list[Any]:
    return [module for module in model.modules() if hasattr(module, "lora_A")]


def gradients(model: Any) -> dict[str, torch.Tensor]:
    model.zero_grad()
    model(input_ids=IDS).logits.float().log_softmax(-1)[..., 25].mean().backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.requires_grad}


def test_adapters_begin_as_the_identity() -> None:
    ids = torch.tensor([[18, 19, 20, 30]])
    with torch.no_grad():
        expected = load_base(ModelSettings(), "cpu", 0)(input_ids=ids).logits
        model = add_adapters(load_base(ModelSettings(), "cpu", 0), LoraSettings(r=2, lora_alpha=4), seed=0)
        assert torch.equal(model(input_ids=ids).logits, expected)
    config = model.peft_config["default"]
    assert (config.r, config.lora_alpha, config.lora_dropout) == (2, 4, 0.0)


@pytest.mark.parametrize(
    ("targets", "message"),
    [(("q_proj", "v_prj"), "'v_prj' was given.*did you mean 'v_proj'"), (("nope",), "'nope'")],
)
def test_a_target_that_is_no_module(targets: tuple[str, ...], message: str) -> None:
    base = load_base(ModelSettings(), "cpu", seed=0)
    with pytest.raises(ModelError, match=message):
        add_adapters(base, LoraSettings(target_modules=targets), seed=0)


def test_an_adapter_of_a_bfloat16_model_computes_in_bfloat16_with_float32_weights() -> None:
    layer = layers_of(adapted("bfloat16"))[0]
    a, b = layer.lora_A.default.weight, layer.lora_B.default.weight
    assert a.dtype == b.dtype == torch.float32 and b.count_nonzero()
    x = torch.randn(5, a.shape[1], generator=torch.Generator().manual_seed(1)).bfloat16()
    with torch.no_grad():
        expected = layer.base_layer(x) + (x @ a.bfloat16().T) @ b.bfloat16().T * (32 / 4)
        assert torch.equal(layer(x), expected)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_other_types_compute_as_peft_does(dtype: str) -> None:
    ours, plain = adapted(dtype), adapted(dtype, plain=True)
    with torch.no_grad():
        assert torch.equal(ours(input_ids=IDS).logits, plain(input_ids=IDS).logits)


def test_gradients_are_float32_and_as_near_the_exact_ones_as_those_of_float32_adapters() -> None:
    """Exact is the same model in float32. bfloat16 rounds everything else, whatever adapters compute in."""
    exact_model = adapted("bfloat16", plain=True).float()
    ours, plain, exact = (
        gradients(model) for model in (adapted("bfloat16"), adapted("bfloat16", plain=True), exact_model)
    )
    assert {gradient.dtype for gradient in ours.values()} == {torch.float32}

    def error(found: dict[str, torch.Tensor]) -> float:
        return torch.cat([(found[name] - exact[name]).flatten() for name in exact]).norm().item()

    total = torch.cat([gradient.flatten() for gradient in exact.values()]).norm().item()
    assert 0 < error(ours) < 1.2 * error(plain) < 0.1 * total


def test_an_adapters_input_is_not_copied_for_the_way_back() -> None:
    """Autograd keeps one input for q, k and v together: the norm's output, in bfloat16."""
    model = adapted("bfloat16")
    attention = copy.deepcopy(model.base_model.model.model.layers[0].self_attn)
    x = torch.randn(1, 9, attention.q_proj.in_features).bfloat16()
    kept: dict[int, torch.Tensor] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        for projection in (attention.q_proj, attention.k_proj, attention.v_proj):
            projection(x)
    wide = [tensor for tensor in kept.values() if 9 in tensor.shape and x.shape[-1] in tensor.shape]
    assert [(tensor.data_ptr(), tensor.dtype) for tensor in wide] == [(x.data_ptr(), torch.bfloat16)]


def test_weights_have_the_same_names_and_type_beside_every_base_model() -> None:
    """So a checkpoint of adapters fits a base model of any type."""
    named = {dtype: dict(adapted(dtype).named_parameters()) for dtype in DTYPES}
    trained = {
        dtype: {name: p.dtype for name, p in parameters.items() if p.requires_grad}
        for dtype, parameters in named.items()
    }
    assert trained["bfloat16"] == trained["float16"] == trained["float32"]
    assert set(trained["float32"].values()) == {torch.float32}


@pytest.mark.parametrize("rank", [10**8, 20_000])
def test_a_rank_beyond_every_layer_is_refused_before_it_takes_memory(rank: int) -> None:
    base = load_base(ModelSettings(), "cpu", 0)
    sides = [side for layer in base.modules() if isinstance(layer, nn.Linear) for side in layer.weight.shape]
    assert max(sides) < 20_000
    said = f"lora.r: {rank} was given, allowed: 1 … {max(sides)}, the largest side"
    with pytest.raises(ModelError, match=re.escape(said)):
        add_adapters(base, LoraSettings(r=rank), seed=0)


def test_a_folder_of_adapters_is_no_model(tmp_path: Path) -> None:
    """transformers would load the base and the rank that the file names, whoever wrote it."""
    folder = tmp_path / "model"
    shutil.copytree(TINY, folder)
    settings = {"peft_type": "LORA", "r": 10**8, "base_model_name_or_path": "/somewhere/else"}
    (folder / "adapter_config.json").write_text(json.dumps(settings))
    with pytest.raises(ModelError, match=r"has an adapter_config\.json, so it is a folder of adapters"):
        load_base(ModelSettings(model_name=str(folder)), "cpu", 0)
