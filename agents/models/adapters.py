"""The adapters that are trained in place of a base model's weights."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from gamespiel.agents.hyperparameters import ALL_LINEAR, LoraSettings
from gamespiel.agents.models import quantization, targets
from gamespiel.agents.models.weights import ModelError

__all__ = ["ALL_LINEAR", "LoraSettings", "add_adapters"]


SUMMED = 2**15
"""The most weights of a layer whose adapter is added to them, since each forward makes that sum anew."""


def add_adapters(base: Any, settings: LoraSettings, seed: int) -> Any:
    """Returns the PEFT model around ``base``; its trainable float32 adapters change nothing at first (B = 0).

    Adapters of a bfloat16 model compute in bfloat16; see ``_Projection``. Those of a float32 model's small
    layers are added to the weights; see ``_make_summed_class``.

    Raises:
        ModelError: the model lacks a target module, which PEFT itself would ignore, a target shares its
            weights with the embedding, PEFT cannot adapt it, or the rank is beyond all of its layers.
    """
    targets.check(base, settings.target_modules)
    _check_rank(base, settings.r)
    with nullcontext() if quantization.is_quantised(base) else quantization.plain_peft():
        from peft import LoraConfig, get_peft_model

        config = LoraConfig(
            task_type="CAUSAL_LM",
            lora_dropout=0.0,
            r=settings.r,
            lora_alpha=settings.lora_alpha,  # type: ignore[arg-type]  # PEFT divides by r: any number does
            target_modules=list(settings.target_modules),
        )
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            torch.manual_seed(seed)
            # PEFT asks transformers for an attribute that transformers has renamed.
            warnings.filterwarnings("ignore", message=".*is_gradient_checkpointing", category=FutureWarning)
            try:
                model = get_peft_model(base, config)
            except ValueError as error:
                raise targets.explain_refusal(base, settings.target_modules, error) from error
        targets.check_adapted(model, settings.target_modules)
    if base.dtype == torch.bfloat16:
        _compute_in_type_of_input(model)
    elif base.dtype == torch.float32:
        _sum_weights_of_small_layers(model)
    return model


def _check_rank(base: nn.Module, rank: int) -> None:
    """Raises ModelError if a rank is larger than every side of every layer: it would only take memory."""
    sides = [
        int(side)
        for layer in base.modules()
        for side in (getattr(layer, "in_features", 0), getattr(layer, "out_features", 0))
        if isinstance(side, int)
    ]
    largest = max(sides, default=0)
    if rank > largest > 0:
        raise ModelError(
            f"lora.r: {rank} was given, allowed: 1 … {largest}, the largest side of a layer of this model"
        )


class _Projection(nn.Linear):
    """One of an adapter's two matrices: kept in float32, and multiplied in the type of the input.

    PEFT would copy the input to float32 for each adapter. Autograd would keep the copies, nearly half of an
    update's activations, and products of float32 are several times slower than those of bfloat16. This is
    what ``torch.autocast`` does to adapters, without its changes to the base model. float16 is left to PEFT:
    its small gradients would become 0.
    """

    def forward(self, input: Tensor) -> Tensor:
        return nn.functional.linear(input, self.weight.to(input.dtype))


def _compute_in_type_of_input(model: nn.Module) -> None:
    from peft.tuners.lora import LoraLayer

    for layer in model.modules():
        if isinstance(layer, LoraLayer):
            layer.cast_input_dtype_enabled = False
            for projection in (*layer.lora_A.values(), *layer.lora_B.values()):
                # A new module would have to take over the weights, which PEFT finds by the modules' names.
                projection.__class__ = _Projection


def _sum_weights_of_small_layers(model: nn.Module) -> None:
    from peft.tuners.lora.layer import Linear

    for layer in model.modules():
        if type(layer) is Linear and type(layer.base_layer) is nn.Linear and _is_small(layer):
            layer.__class__ = _make_summed_class()  # type: ignore[assignment]


@cache
def _make_summed_class() -> type[nn.Module]:
    """Returns the class of layers whose adapter is added to the weights."""
    from peft.tuners.lora.layer import Linear  # imported late: it takes seconds

    class _SummedLinear(Linear):
        """An adapted layer that multiplies its input once, by W + scale B A. Each forward makes that sum.

        PEFT multiplies three times, and has six sums and scalings of whole outputs, back included. In a small
        layer the gradient of the sum costs less than those.
        """

        sums_weights = True

        def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
            if self.disable_adapters or self.merged or args or kwargs:
                result: Tensor = super().forward(x, *args, **kwargs)
                return result
            base: Any = self.base_layer
            weight: Tensor = base.weight
            for name in self.active_adapters:
                if name in self.lora_A:
                    b: Any = self.lora_B[name]
                    a: Any = self.lora_A[name]
                    weight = torch.addmm(weight, b.weight, a.weight, alpha=self.scaling[name])
            return nn.functional.linear(x, weight, base.bias)

    return _SummedLinear


def is_summed(layer: nn.Module) -> bool:
    """Returns whether a layer's adapter is added to its weights."""
    return getattr(layer, "sums_weights", False)


def _is_small(layer: Any) -> bool:
    """Returns whether one product with the sum, back included, costs at most what an adapter adds.

    Per token, the gradient of the sum takes inputs * outputs multiplications. A and B take rank * (inputs +
    outputs), three times.
    """
    inputs, outputs = layer.in_features, layer.out_features
    adapters = (3 * rank * (inputs + outputs) for rank in layer.r.values())
    return inputs * outputs <= min(SUMMED, *adapters)
