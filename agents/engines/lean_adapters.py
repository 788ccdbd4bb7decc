"""Adapters as two products beside the frozen one, whose matrices are cast once per optimizer step.

PEFT makes a tensor as large as the output three times: the adapter's product, the scaled one, and the sum. In
bfloat16, both matrices are also cast in each call.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from gamespiel.agents.models.adapters import is_summed

CLASSES = ("Linear", "Linear4bit", "Linear8bitLt")
"""PEFT's classes of adapted linear layers, whose base layers return one tensor."""


class LeanLayer(nn.Module):
    """The ``forward`` of adapted layers, in place of PEFT's."""

    def forward(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        layer: Any = self
        if layer.disable_adapters or layer.merged or args or kwargs:
            plain: Tensor = super().forward(x, *args, **kwargs)
            return plain
        result: Tensor = layer.base_layer(x)
        for name in layer.active_adapters:
            if name in layer.lora_A:
                a, b = layer.lora_A[name].weight, layer.lora_B[name].weight
                casts = self._cast(f"{name}.A", a, x.dtype), self._cast(f"{name}.B", b, x.dtype)
                if torch.is_grad_enabled():
                    result = _AddAdapter.apply(x, result, a, b, *casts, layer.scaling[name])
                else:
                    result = _add_adapter(x, result, *casts, layer.scaling[name])[0]
        return result

    def _cast(self, key: str, parameter: Tensor, dtype: torch.dtype) -> Tensor:
        """Returns a matrix in the type of the input: the one of an earlier call, if it is still right."""
        if parameter.dtype == dtype:
            return parameter
        if parameter.is_cuda and torch.cuda.is_current_stream_capturing():
            return parameter.detach().to(dtype)  # a replay sees the adapters of its time
        casts: dict[str, _Cast] = vars(self).setdefault("_casts", {})
        if key not in casts or not casts[key].is_of(parameter, dtype):
            casts[key] = _Cast.make(parameter, dtype)
        return casts[key].matrix


class _Cast(NamedTuple):
    """A matrix in another type.

    Attributes:
        matrix: The matrix.
        version: torch's count of changes to the parameter, when it was cast.
        storage: The parameter's memory then. Named adapters are swapped in without a change of the version
            (``AdapterSets``). A weak reference dies with the memory; an address could be that of later ones.
    """

    matrix: Tensor
    version: int
    storage: weakref.ref[torch.UntypedStorage]

    @classmethod
    def make(cls, parameter: Tensor, dtype: torch.dtype) -> _Cast:
        storage = weakref.ref(parameter.untyped_storage())
        return cls(parameter.detach().to(dtype), parameter._version, storage)

    def is_of(self, parameter: Tensor, dtype: torch.dtype) -> bool:
        return (
            self.version == parameter._version
            and self.storage() is parameter.untyped_storage()
            and self.matrix.dtype == dtype
        )


def _add_adapter(
    x: Tensor, base: Tensor, a: Tensor, b: Tensor, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns base + scale * (x A^T) B^T, (..., outputs), the rows of x (n, inputs), and x A^T (n, rank)."""
    rows = x.reshape(-1, x.shape[-1])
    inner = rows @ a.T
    total = torch.addmm(base.reshape(-1, base.shape[-1]), inner, b.T, alpha=scale)
    return total.view(base.shape), rows, inner


class _AddAdapter(torch.autograd.Function):
    """``_add_adapter`` with gradients of the matrices in their own types.

    ``a`` and ``b`` take the gradients, and their casts are what is multiplied.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, base: Tensor, a: Tensor, b: Tensor, a_cast: Tensor, b_cast: Tensor, scale: float
    ) -> Tensor:
        total, rows, inner = _add_adapter(x, base, a_cast, b_cast, scale)
        ctx.save_for_backward(rows, inner, a_cast, b_cast)
        ctx.scale, ctx.shape, ctx.dtypes = scale, x.shape, (a.dtype, b.dtype)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rows, inner, a_cast, b_cast = ctx.saved_tensors
        flat = grad.reshape(-1, grad.shape[-1])
        scaled = (flat @ b_cast).mul_(ctx.scale)
        grad_x = (scaled @ a_cast).view(ctx.shape) if ctx.needs_input_grad[0] else None
        grad_a, grad_b = scaled.T @ rows, (flat.T @ inner).mul_(ctx.scale)
        return grad_x, grad, grad_a.to(ctx.dtypes[0]), grad_b.to(ctx.dtypes[1]), None, None, None


def forget_casts(layer: nn.Module) -> None:
    """Drops what a layer that is lean no longer has cast."""
    vars(layer).pop("_casts", None)


def find_adapted(model: nn.Module) -> list[nn.Module]:
    """Returns the layers whose adapters can be lean: all but those that are added to the weights."""
    return [layer for layer in model.modules() if hasattr(layer, "lora_A") and not is_summed(layer)]


def find_adapter_obstacle(engine: Any) -> str | None:
    """Returns why an engine's model cannot have lean adapters, or None if it can."""
    if not any(hasattr(layer, "lora_A") for layer in engine.model.modules()):
        return "the model has no adapters"
    layers = find_adapted(engine.model)
    if not layers:
        return "all layers are so small that their adapters are added to the weights in float32"
    return next(filter(None, map(_find_obstacle, layers)), None)


def _find_obstacle(layer: Any) -> str | None:
    kind = type(layer).__name__
    if kind not in CLASSES:
        return f"an adapted layer is a {kind} of PEFT; allowed: {', '.join(CLASSES)}"
    if any(not isinstance(dropout, nn.Identity) for dropout in layer.lora_dropout.values()):
        return "the adapters have dropout; allowed: lora_dropout 0"
    if layer.lora_variant or any(layer.lora_bias.values()):
        return "the adapters are a variant of LoRA, such as DoRA; allowed: plain LoRA without biases"
    if layer.cast_input_dtype_enabled and layer.get_base_layer().weight.dtype == torch.float16:
        return "PEFT computes adapters of a float16 model in float32; allowed: bfloat16 or float32"
    return None
