"""Base models whose linear layers are kept in 4 or 8 bits, by bitsandbytes."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import nn

from gamespiel.agents.models.weights import ModelError


@contextmanager
def replace_names(module: ModuleType, **values: Any) -> Iterator[None]:
    """Gives names of a module other values within the context."""
    before = {name: getattr(module, name) for name in values}
    vars(module).update(values)
    try:
        yield
    finally:
        vars(module).update(before)


@dataclass(frozen=True)
class Quantization:
    """The format of linear layers; the embedding, the output head and the norms keep the model's dtype.

    Attributes:
        bits: 4 (NF4, Dettmers et al. 2023, arXiv:2305.14314) or 8 (int8 per row of weights and per token).
        nested: Whether the constants of 4 bits are kept in 8 bits.
        dtype: The type in which 4 bits compute, and of all that is not quantised.
    """

    bits: int
    nested: bool
    dtype: torch.dtype


def check(chosen: Quantization, device: torch.device) -> None:
    """Raises unless a small layer can be quantised on the device, and be read and learned through there.

    Raises:
        ModelError: bitsandbytes is missing, or cannot do it there.
    """
    key = f"model.use_{chosen.bits}bit"
    try:
        _import_bitsandbytes()
    except ImportError as error:
        raise ModelError(f"{key} needs the package bitsandbytes: pip install bitsandbytes") from error
    try:
        with torch.random.fork_rng(devices=[]):
            layer = _quantise_layers(nn.Linear(64, 64, bias=False, dtype=chosen.dtype), chosen, device).eval()
        inputs = torch.ones(2, 64, dtype=chosen.dtype, device=device, requires_grad=True)
        first, second = layer(inputs.detach()), layer(inputs)
        second.float().sum().backward()
    except Exception as error:  # whatever a device without the kernels raises
        raise ModelError(
            f"{key}: bitsandbytes cannot do this on {describe_device(device)}: {error}"
        ) from error
    if inputs.grad is None or not inputs.grad.any() or not torch.equal(first, second):
        raise ModelError(
            f"{key}: on {describe_device(device)}, this version of bitsandbytes computes otherwise with "
            "gradients than without: choose another version, or leave the key out"
        )


def describe_device(device: torch.device) -> str:
    """Returns a device in words, with a GPU's name."""
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else f"the {device}"


def config_of(chosen: Quantization) -> Any:
    """Returns the configuration with which ``from_pretrained`` quantises while it loads."""
    from transformers import BitsAndBytesConfig

    if chosen.bits == 8:
        return BitsAndBytesConfig(load_in_8bit=True, llm_int8_threshold=0.0)  # 0: see settled
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type="nf4",
        bnb_4bit_use_double_quant=chosen.nested,
        bnb_4bit_compute_dtype=chosen.dtype,
    )


def bits_of(config: Any) -> int | None:
    """Returns in how many bits bitsandbytes had a model with this configuration saved, or None."""
    saved = getattr(config, "quantization_config", None)
    saved = saved if isinstance(saved, dict) or saved is None else saved.to_dict()
    if not saved or saved.get("quant_method", "bitsandbytes") != "bitsandbytes":
        return None
    return 4 if saved.get("load_in_4bit") else 8 if saved.get("load_in_8bit") else None


def quantise(model: Any, chosen: Quantization, device: torch.device) -> Any:
    """Returns a loaded model with its linear layers quantised and on the device, one at a time.

    It is what ``from_pretrained`` does with ``config_of``, for weights that it cannot quantise.
    """
    head = model.get_output_embeddings()
    for name, module in list(model.named_modules()):
        if type(module) is nn.Linear and module is not head:
            model.set_submodule(name, _quantise_layers(module, chosen, device))
    model.to(device)
    # PEFT looks for these to choose its adapters.
    setattr(model, f"is_loaded_in_{chosen.bits}bit", True)
    model.config.quantization_config = config_of(chosen)
    return model


def _quantise_layers(module: nn.Linear, chosen: Quantization, device: torch.device) -> nn.Linear:
    bnb = _import_bitsandbytes()
    sizes, biased, weight = (
        (module.in_features, module.out_features),
        module.bias is not None,
        module.weight.data,
    )
    with torch.device("meta"):
        if chosen.bits == 8:
            layer = bnb.nn.Linear8bitLt(*sizes, biased, has_fp16_weights=False, threshold=0.0)
            layer.weight = bnb.nn.Int8Params(weight, requires_grad=False, has_fp16_weights=False)
        else:
            layer = bnb.nn.Linear4bit(
                *sizes, biased, chosen.dtype, compress_statistics=chosen.nested, quant_type="nf4"
            )
            layer.weight = bnb.nn.Params4bit(
                weight, requires_grad=False, compress_statistics=chosen.nested, quant_type="nf4", module=layer
            )
    if module.bias is not None:
        layer.bias = nn.Parameter(module.bias.data, requires_grad=False)
    return settle_device(layer.to(device))


def settle_device(model: Any) -> Any:
    """Returns the model with its quantised layers computing in one way, whatever they have read before.

    - 4 bits: on CPUs with AVX512-BF16, bitsandbytes repacks a layer's weights at the first pass in evaluation
      mode without gradients. From then on its product is another one, and no gradient goes through it.
    - 8 bits: a threshold takes a column with an outlier out of int8 for all rows of a batch, so that a row's
      result depends on the rows beside it. Then old and new log-probabilities differ with no update at all.
      And bitsandbytes keeps a layer's input for the gradient of its weights, which are frozen, where gradient
      checkpointing does not find it: of a large model, gigabytes.
    """
    bnb = _import_bitsandbytes()
    for module in model.modules():
        if isinstance(module, bnb.nn.Linear4bit):
            module.support_avx512bf16_for_cpu = False
        elif isinstance(module, bnb.nn.Linear8bitLt):
            module.state.threshold = 0.0
            module.register_forward_hook(_forget_input)
    return model


def _forget_input(module: nn.Module, inputs: Any, output: torch.Tensor) -> None:
    """Drops the input of a layer in 8 bits from its product's node, whose way back needs only weights."""
    if output.grad_fn is not None:
        output.grad_fn.tensors = (None, None, None)  # type: ignore[attr-defined]  # bitsandbytes' own


@contextmanager
def plain_peft() -> Iterator[None]:
    """Keeps PEFT from importing bitsandbytes within the context, for models that are not quantised.

    If bitsandbytes is installed, PEFT imports it for any model. That takes seconds, prints a warning on
    some CPUs, and asks the model hub for kernels if the package kernels is installed.
    """
    if "peft" not in sys.modules and "bitsandbytes" not in sys.modules:
        sys.modules["bitsandbytes"] = None  # type: ignore[assignment]  # the import fails, and PEFT goes on
        try:
            import peft  # noqa: F401
        finally:
            del sys.modules["bitsandbytes"]
    from peft.tuners.lora import model as chooser

    with replace_names(chooser, is_bnb_available=lambda: False, is_bnb_4bit_available=lambda: False):
        yield


def _import_bitsandbytes() -> Any:
    """Returns bitsandbytes, imported only here, and without its words about kernels that are not used."""
    logger = logging.getLogger("bitsandbytes.backends.cpu.ops")
    before, logger.disabled = logger.disabled, True
    try:
        import bitsandbytes
    finally:
        logger.disabled = before

    # It says at every product that it computes in float16, which is what int8 means.
    logging.getLogger("bitsandbytes.autograd._functions").setLevel(logging.ERROR)
    return bitsandbytes
