"""Adapters: where they go, what they begin as, and the type in which they compute."""

import copy
import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from peft.tuners.lora.layer import Linear as PeftLinear
from torch import nn

from gamespiel.agents.models.adapters import ALL_LINEAR, LoraSettings, _is_small, add_adapters
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


def model_of_small_layers(**kwargs: Any) -> Any:
    """Returns a float32 model with adapters of rank 16, random ones: its layers are 64 × 64, 32 and 192."""
    model = add_adapters(load_base(ModelSettings(), "cpu", 0), LoraSettings(r=16, **kwargs), seed=0).eval()
    torch.manual_seed(0)
    for layer in layers_of(model):
        layer.lora_B.default.weight.data.normal_(0, 0.1)
    return model


def copy_with_peft_layers(model: Any) -> Any:
    """Returns a copy whose adapters compute as PEFT has them."""
    plain = copy.deepcopy(model)
    for layer in layers_of(plain):
        layer.__class__ = PeftLinear
    return plain


@pytest.mark.parametrize(
    ("rank", "plain"), [(16, set()), (15, {"gate_proj", "up_proj", "down_proj"})], ids=["all", "narrow"]
)
def test_layers_as_small_as_their_adapters_multiply_once(rank: int, plain: set[str]) -> None:
    """64 × 192 = 12,288 = 3 × 16 × 256: of rank 16 all layers are small. Of 15, the 192 wide are not."""
    model = add_adapters(load_base(ModelSettings(), "cpu", 0), LoraSettings(r=rank), 0)
    kinds = {
        name.rsplit(".", 1)[-1]: type(layer) is PeftLinear
        for name, layer in model.named_modules()
        if hasattr(layer, "lora_A")
    }
    assert kinds == {name: name in plain for name in ALL_LINEAR}


def test_a_layer_of_many_weights_is_never_small() -> None:
    """256 × 128 = 32,768 is the limit, although an adapter of rank 64 has 3 × 64 × 384 = 73,728."""
    sizes = {"in_features": 256, "r": {"default": 64}}
    assert _is_small(SimpleNamespace(**sizes, out_features=128))
    assert not _is_small(SimpleNamespace(**sizes, out_features=129))


def test_what_a_small_layer_computes_and_learns_is_what_peft_does() -> None:
    ours = model_of_small_layers(lora_alpha=8)
    plain = copy_with_peft_layers(ours)
    with torch.no_grad():
        one, other = ours(input_ids=IDS).logits, plain(input_ids=IDS).logits
    assert (one - other).norm() < 1e-6 * other.norm() and not torch.equal(one, other)
    found, expected = gradients(ours), gradients(plain)
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        assert (found[name] - gradient).norm() < 1e-5 * gradient.norm(), name


def test_a_small_layer_without_its_adapter_is_the_base() -> None:
    model, base = model_of_small_layers(), load_base(ModelSettings(), "cpu", 0)
    with torch.no_grad():
        expected = base(input_ids=IDS).logits
        with model.disable_adapter():
            assert torch.equal(model(input_ids=IDS).logits, expected)
        assert (model(input_ids=IDS).logits - expected).norm() > 1e-2 * expected.norm()


def test_a_second_adapter_and_a_merge_are_as_with_peft() -> None:
    model = model_of_small_layers()
    model.add_adapter("second", model.peft_config["default"])
    for layer in layers_of(model):
        layer.lora_B.second.weight.data.normal_(0, 0.1)
    model.base_model.set_adapter(["default", "second"])
    with torch.no_grad():
        both = model(input_ids=IDS).logits
        assert torch.allclose(both, copy_with_peft_layers(model)(input_ids=IDS).logits, atol=1e-4)
        model.merge_adapter()
        assert torch.allclose(model(input_ids=IDS).logits, both, atol=1e-4)
        model.unmerge_adapter()
        model.set_adapter("second")
        assert torch.allclose(
            model(input_ids=IDS).logits, copy_with_peft_layers(model)(input_ids=IDS).logits, atol=1e-4
        )
