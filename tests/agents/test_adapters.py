"""Adapters: where they go, what they begin as, and the type in which they compute."""

import copy
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from peft.tuners.lora.layer import Linear as PeftLinear
from torch import nn

from gamespiel.agents.models.adapters import ALL_LINEAR, LoraSettings, _is_small, add_adapters
from gamespiel.agents.models.loading import ModelError, ModelSettings, load_base

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
    ("settings", "message"),
    [
        ({"target_modules": ("q_proj", "v_prj")}, "'v_prj' was given.*'v_proj'"),
        ({"target_modules": ("nope",)}, "'nope'"),
        ({"r": 1537}, r"lora\.r: 1537 was given, allowed: 1 … 1536"),
        ({"r": 10**8}, "100000000"),
    ],
)
def test_settings_that_fit_no_layer_are_refused(settings: dict[str, Any], message: str) -> None:
    """The largest layer is the output head, of 64 × 1,536. A rank is refused before it takes memory."""
    base = load_base(ModelSettings(), "cpu", seed=0)
    with pytest.raises(ModelError, match=message):
        add_adapters(base, LoraSettings(**settings), seed=0)


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
    adapter_model, plain = adapted(dtype), adapted(dtype, plain=True)
    with torch.no_grad():
        assert torch.equal(adapter_model(input_ids=IDS).logits, plain(input_ids=IDS).logits)
    assert {p.dtype for p in adapter_model.parameters() if p.requires_grad} == {torch.float32}


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


def test_a_second_adapter_a_merge_and_none_are_as_with_peft() -> None:
    model = model_of_small_layers()
    with torch.no_grad(), model.disable_adapter():
        expected = load_base(ModelSettings(), "cpu", 0)(input_ids=IDS).logits
        assert torch.equal(model(input_ids=IDS).logits, expected)
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
