"""Base models in 4 and 8 bits: what is rounded, and that one pass computes as another."""

from __future__ import annotations

import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from gamespiel.agents.models.adapters import LoraSettings, add_adapters
from gamespiel.agents.models.loading import ModelError, ModelSettings, load_base
from gamespiel.agents.models.quantization import Quantization, bits_of, quantise
from gamespiel.agents.runs import checkpoint
from tests.agents.deciders import as_reference
from tests.agents.ggufs import write
from tests.agents.smollm2 import GAMES, divergences, policy, read, states
from tests.agents.toys import Bandit, make_ppo

CPU = torch.device("cpu")
KINDS = [{"use_4bit": True}, {"use_4bit": True, "use_nested_quant": True}, {"use_8bit": True}]
IDS = torch.randint(20, 200, (3, 17), generator=torch.Generator().manual_seed(0))


def loaded(**settings: Any) -> Any:
    return load_base(ModelSettings(**settings), CPU, seed=0)


def linears(model: Any) -> dict[str, nn.Linear]:
    return {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}


def logits(model: Any, ids: torch.Tensor = IDS) -> torch.Tensor:
    with torch.no_grad():
        result: torch.Tensor = model(input_ids=ids).logits
    return result


# -- what is rounded ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_all_linear_layers_but_the_head_are_quantised(kind: dict[str, Any]) -> None:
    """transformers does it while it loads a folder. GGUF files and random weights are quantised here."""
    model, base = loaded(**kind), loaded(dtype="bfloat16")
    types = {name: type(module).__name__ for name, module in linears(model).items()}
    assert types.pop("lm_head") == "Linear"
    assert set(types.values()) == {"Linear4bit" if "use_4bit" in kind else "Linear8bitLt"}
    assert len(types) == 2 * 7  # two layers of seven modules
    if "use_4bit" in kind:
        assert {m.weight.quant_type for n, m in linears(model).items() if n != "lm_head"} == {"nf4"}
    assert not any(parameter.requires_grad for parameter in model.parameters()) and not model.training
    plain = {p.dtype for p in model.parameters() if p.is_floating_point()}
    assert plain == {torch.bfloat16}  # the embedding and the norms; without a dtype, bfloat16
    chosen = Quantization(4 if "use_4bit" in kind else 8, "use_nested_quant" in kind, torch.bfloat16)
    expected = logits(base)
    assert torch.equal(logits(model), logits(quantise(base, chosen, CPU).eval()))
    assert not torch.equal(logits(model), expected)


@pytest.mark.parametrize(("random_weights", "kind"), [(False, KINDS[1]), (True, KINDS[2])])
def test_gguf_files_and_random_weights(random_weights: bool, kind: dict[str, Any], tmp_path: Path) -> None:
    settings = {"model_name": str(write(tmp_path / "small.gguf")), "random_weights": random_weights}
    plain, rounded = logits(loaded(**settings, dtype="bfloat16")), logits(loaded(**settings, **kind))
    assert not torch.equal(plain, rounded)
    # Cosine of the angle between the logits, which is 0 for logits that have nothing to do with another.
    assert torch.cosine_similarity(plain.float().flatten(), rounded.float().flatten(), dim=0) > 0.9


def test_a_folder_that_was_saved_in_few_bits_is_loaded_as_it_is(tmp_path: Path) -> None:
    assert bits_of(loaded().config) is None
    for kind, bits, other in (("use_4bit", 4, "use_8bit"), ("use_8bit", 8, "use_4bit")):
        folder = tmp_path / kind
        saved = loaded(**{kind: True})
        saved.save_pretrained(folder)
        assert bits_of(saved.config) == bits
        for settings in ({}, {kind: True}):
            again = loaded(model_name=str(folder), **settings)
            assert torch.equal(logits(again), logits(saved))
        with pytest.raises(ModelError, match=rf"in {bits} bits, and model\.{other} was given"):
            loaded(model_name=str(folder), **{other: True})


# -- one pass as another -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS[1:])
def test_passes_with_and_without_gradients_agree_in_any_order(kind: dict[str, Any]) -> None:
    """On some CPUs bitsandbytes repacks weights that are read without gradients, and then loses gradients."""
    from peft.tuners.lora.layer import LoraLayer

    model = add_adapters(loaded(**kind), LoraSettings(r=4), seed=0).eval()
    model.apply(lambda m: m.lora_B.default.weight.data.normal_(0, 0.1) if isinstance(m, LoraLayer) else None)

    def gradients() -> list[torch.Tensor]:
        model.zero_grad()
        model(input_ids=IDS).logits.float().log_softmax(-1)[:, -1, 5].sum().backward()
        return [p.grad.clone() for p in model.parameters() if p.grad is not None]

    with torch.enable_grad():
        before, first = gradients(), model(input_ids=IDS).logits.detach()
    assert len(before) == 2 * 2 * 7  # A and B of each adapted module
    assert torch.equal(logits(model), first)
    after = gradients()
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_layer_does_not_keep_its_input(kind: dict[str, Any]) -> None:
    """Its weights are frozen. An input that is kept past saved tensors stays under gradient checkpointing.

    The gradient of the outputs' sum is the sum of the weights, here in bfloat16, of each input.
    """
    layer = linears(loaded(**kind))["model.layers.0.mlp.up_proj"]
    inputs = torch.ones(1, 3, layer.in_features, dtype=torch.bfloat16, requires_grad=True)
    read = inputs * 2
    storage_ref = weakref.ref(read.untyped_storage())
    product = layer(read)
    del read
    assert storage_ref() is None
    product.sum().backward()
    assert inputs.grad is not None
    identity = torch.eye(layer.in_features, dtype=torch.bfloat16)
    with torch.no_grad():
        expected = 2 * layer(identity).float().sum(-1)
    assert torch.allclose(inputs.grad[0, 0].float(), expected, rtol=0.05, atol=0.1)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_a_row_does_not_depend_on_the_rows_beside_it(kind: dict[str, Any]) -> None:
    """An outlier, here in one row's embedding, must change nothing in the other rows."""
    model = loaded(**kind, dtype="float32")
    alone = logits(model, IDS[:1])
    model.model.embed_tokens.weight.data[7] *= 1e3
    beside = torch.cat([IDS[:1], torch.full_like(IDS[:1], 7)])
    assert 7 not in IDS
    assert torch.allclose(logits(model, beside)[:1, :, 8:], alone[:, :, 8:], atol=1e-4)


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(KINDS[0], marks=[pytest.mark.trains, pytest.mark.sample]),
        *(pytest.param(kind, marks=pytest.mark.trains) for kind in KINDS[1:]),
    ],
)
def test_a_quantised_base_stays_the_reference_and_training_goes_on_bit_for_bit(
    kind: dict[str, Any], tmp_path: Path
) -> None:
    settings = {"policy_kwargs": {"lora": {"r": 4}, "model": kind}, "batch_size": 8}
    model = make_ppo(Bandit, total_steps=1, **settings)
    start = {name: value.clone() for name, value in model.policy.state_dict().items()}
    trained = model.learn().policy.state_dict()
    assert all(not torch.equal(trained[name], start[name]) for name in start if "lora_B" in name)
    with as_reference(model.policy):
        reference = logits(model.policy.model)
    assert torch.equal(reference, logits(loaded(**kind)))
    assert not torch.equal(reference, logits(model.policy.model))
    folder, resumed = checkpoint.save(model, tmp_path), make_ppo(Bandit, total_steps=2, **settings)
    checkpoint.load(resumed, folder)
    model.total_steps = 2
    ours, theirs = model.learn().policy.state_dict(), resumed.learn().policy.state_dict()
    assert [name for name in ours if not torch.equal(ours[name], theirs[name])] == []


@pytest.mark.weights("smollm2")
def test_four_bits_of_a_real_model_stay_near_sixteen() -> None:
    """Bounds by Pinsker's inequality: the total variation is at most sqrt(KL / 2).

    - Mean KL over legal actions below 0.125 nats: at most sqrt(0.0625) = a quarter of the decisions differ.
    - Mean KL over the vocabulary below 0.5 nats: at most sqrt(0.25) = half of the mass of next tokens moves.

    Below a hundredth of these the two would be the same model: rounding has to be seen.
    """
    asked = [state for game in GAMES for state in states(game, 4)]
    legal, vocabulary = divergences(read(policy(), asked), read(policy(use_4bit=True), asked))
    assert (legal >= -1e-9).all() and (vocabulary >= -1e-9).all()
    assert 0.00125 < legal.mean() < 0.125
    assert 0.005 < vocabulary.mean() < 0.5


# -- errors ------------------------------------------------------------------------------------------------


def test_bits_that_cannot_be_had_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four and eight at once; on a device that cannot do it; a version that loses gradients; no package."""
    with pytest.raises(ModelError, match="use_4bit and use_8bit contradict each other"):
        loaded(use_4bit=True, use_8bit=True)

    def fail(layer: object, x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no kernel image is available for execution on the device")

    with monkeypatch.context() as patch:
        patch.setattr("bitsandbytes.nn.Linear8bitLt.forward", fail)
        with pytest.raises(ModelError, match=r"model\.use_8bit: .* on the cpu: no kernel image"):
            loaded(use_8bit=True)
        loaded(use_4bit=True)
    for lossy in (lambda layer, x: x * 0, lambda layer, x: x + float(x.requires_grad)):
        with monkeypatch.context() as patch:
            patch.setattr("bitsandbytes.nn.Linear4bit.forward", lossy)
            with pytest.raises(ModelError, match=r"cpu, .* computes otherwise with gradients than without"):
                loaded(use_4bit=True)
    monkeypatch.setitem(sys.modules, "bitsandbytes", None)
    add_adapters(loaded(), LoraSettings(), 0)  # without bits the package is not needed
    for bits in ("4", "8"):
        with pytest.raises(ModelError, match=rf"model\.use_{bits}bit needs .*pip install bitsandbytes"):
            loaded(**{f"use_{bits}bit": True})
