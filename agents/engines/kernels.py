"""Faster ways to compute the same, equal to rounding. Each is off until it is named.

- ``one_tile``: a token tree of up to 2,048 tokens is attended to as one tile.
- ``added_masks``: masks are made once per forward as numbers to add, and not converted in each layer.
- ``fused_norms``: PyTorch's ``rms_norm`` takes the place of norms that compute exactly that.
- ``lean_adapters``: adapters are two products beside the frozen one, cast once per optimizer step.
- ``fused_adam``: AdamW changes the parameters of a group in one kernel.
- ``graphs``: without gradients, trees of up to 2,048 tokens are padded to one of few shapes. A GPU captures
  each shape once and then replays it in one launch; a CPU reads the padded rows.

They are for GPUs, where a kernel's start takes longer than a small tile's computation.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import rms_norm

from gamespiel.agents.engines.shared import SharedEngine
from gamespiel.agents.hyperparameters import Kernel
from gamespiel.agents.models.adapters import is_summed
from gamespiel.agents.models.optimizer import ScaledAdamW
from task_gym.errors import TaskGymError, check_choice

NAMES: tuple[str, ...] = get_args(Kernel)
"""The kernels' names."""

NORMS = ("LlamaRMSNorm", "Qwen2RMSNorm", "Qwen3RMSNorm", "SmolLM3RMSNorm")
"""Classes of norms that compute what ``rms_norm`` does. In others, weights are 1 + w, or are left out."""


class KernelError(TaskGymError, ValueError):
    """A kernel that cannot be used with a model, its reading or its optimizer."""


def switch(target: Any, names: Collection[str]) -> None:
    """Makes a policy, or an engine by itself, compute with exactly these kernels.

    Raises:
        ArgumentError: there is no such kernel.
        KernelError: one of them cannot be used here. Then nothing is changed.
    """
    for name in names:
        check_choice("kernel", name, NAMES)
    parts = _Parts(getattr(target, "engine", target), getattr(target, "optimizer", None))
    changed = [name for name in NAMES if (name in names) != _SWITCHES[name].is_on(parts)]
    for name in changed:
        if name in names and (obstacle := _SWITCHES[name].find_obstacle(parts)):
            raise KernelError(f"kernel {name!r}: {obstacle}")
    for name in changed:
        _SWITCHES[name].turn(parts, name in names)
    if changed and "graphs" in names:  # what was captured has the kernels of that time
        _SWITCHES["graphs"].turn(parts, True)


def list_active(target: Any) -> tuple[str, ...]:
    """Returns the kernels that a policy, or an engine by itself, computes with."""
    parts = _Parts(getattr(target, "engine", target), getattr(target, "optimizer", None))
    return tuple(name for name in NAMES if _SWITCHES[name].is_on(parts))


@contextmanager
def using(target: Any, names: Collection[str]) -> Iterator[None]:
    """Within the context, a policy or an engine computes with exactly these kernels.

    Raises:
        ArgumentError: there is no such kernel.
        KernelError: one of them cannot be used here.
    """
    before = list_active(target)
    switch(target, names)
    try:
        yield
    finally:
        switch(target, before)


class _Parts(NamedTuple):
    """The parts of a policy that kernels change.

    Attributes:
        engine: Its engine.
        optimizer: Its optimizer, or None if there is only an engine.
    """

    engine: Any
    optimizer: Any


class _Switch(NamedTuple):
    """Turns a kernel on and off.

    Attributes:
        find_obstacle: Returns why the kernel cannot be used, or None if it can.
        is_on: Returns whether the kernel is used.
        turn: Turns the kernel on or off.
    """

    find_obstacle: Callable[[_Parts], str | None]
    is_on: Callable[[_Parts], bool]
    turn: Callable[[_Parts, bool], None]


def _switch_attribute(part: str, name: str, find_obstacle: Callable[[_Parts], str | None]) -> _Switch:
    """Returns the switch that sets an attribute of the engine or of the optimizer."""
    return _Switch(
        find_obstacle,
        lambda parts: getattr(getattr(parts, part), name, False),
        lambda parts, on: setattr(getattr(parts, part), name, on),
    )


def _find_tree_obstacle(parts: _Parts) -> str | None:
    if isinstance(parts.engine, SharedEngine):
        return None
    return f"reading {parts.engine.reading!r} has no token trees; allowed: model.reading 'shared'"


def _find_adam_obstacle(parts: _Parts) -> str | None:
    if isinstance(parts.optimizer, ScaledAdamW):
        return None
    return f"the optimizer is a {type(parts.optimizer).__name__}; allowed: a policy's ScaledAdamW"


def _switch_layers(
    mixin: Any, find: Callable[[nn.Module], Sequence[Any]], find_obstacle: Callable[[Any], str | None]
) -> _Switch:
    """Returns the switch that gives layers of the model another ``forward``, and keeps their parameters.

    Args:
        mixin: The class that has this ``forward``.
        find: Returns a model's layers to change.
        find_obstacle: Returns why an engine's layers cannot be changed, or None if they can.
    """

    def list_changed(parts: _Parts) -> list[nn.Module]:
        return [layer for layer in parts.engine.model.modules() if isinstance(layer, mixin)]

    def turn(parts: _Parts, on: bool) -> None:
        # A new module would have to take over parameters and hooks, which are found by the modules' names.
        if on:
            for layer in find(parts.engine.model):
                plain: Any = type(layer)
                layer.__class__ = _mix(mixin, plain)
            return
        for layer in list_changed(parts):
            layer.__class__ = type(layer).__bases__[1]
            vars(layer).pop("_casts", None)  # of a lean layer

    return _Switch(lambda parts: find_obstacle(parts.engine), lambda parts: bool(list_changed(parts)), turn)


@cache
def _mix(mixin: Any, plain: Any) -> Any:
    """Returns a layer's class with the ``forward`` of a mixin."""
    return type(f"{mixin.__name__}Of{plain.__name__}", (mixin, plain), {})


class FusedNorm(nn.Module):
    """The ``forward`` of fused norms."""

    weight: Tensor
    variance_epsilon: float

    def forward(self, hidden: Tensor) -> Tensor:
        if hidden.dtype != self.weight.dtype:  # rms_norm would return the wider type
            result: Tensor = super().forward(hidden)
            return result
        return rms_norm(hidden, self.weight.shape, self.weight, self.variance_epsilon)


def _find_norms(model: nn.Module) -> list[nn.Module]:
    return [layer for layer in model.modules() if type(layer).__name__ in NORMS]


def _find_norm_obstacle(engine: Any) -> str | None:
    if _find_norms(engine.model):
        return None
    own = sorted({type(m).__name__ for m in engine.model.modules() if type(m).__name__.endswith("Norm")})
    return f"the model's norms are {', '.join(own) or 'none'}; allowed: {', '.join(NORMS)}"


ADAPTED = ("Linear", "Linear4bit", "Linear8bitLt")
"""PEFT's classes of adapted linear layers, whose base layers return one tensor."""


class LeanLayer(nn.Module):
    """The ``forward`` of adapted layers: two products beside the frozen one.

    PEFT makes a tensor as large as the output three times: the product, the scaled one, and the sum.
    In bfloat16, both matrices are also cast in each call, and not once per optimizer step.
    """

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
    return next(filter(None, map(_find_layer_obstacle, layers)), None)


def _find_layer_obstacle(layer: Any) -> str | None:
    kind = type(layer).__name__
    if kind not in ADAPTED:
        return f"an adapted layer is a {kind} of PEFT; allowed: {', '.join(ADAPTED)}"
    if any(not isinstance(dropout, nn.Identity) for dropout in layer.lora_dropout.values()):
        return "the adapters have dropout; allowed: lora_dropout 0"
    if layer.lora_variant or any(layer.lora_bias.values()):
        return "the adapters are a variant of LoRA, such as DoRA; allowed: plain LoRA without biases"
    if layer.cast_input_dtype_enabled and layer.get_base_layer().weight.dtype == torch.float16:
        return "PEFT computes adapters of a float16 model in float32; allowed: bfloat16 or float32"
    return None


_SWITCHES: Mapping[str, _Switch] = {
    "one_tile": _switch_attribute("engine", "one_tile", _find_tree_obstacle),
    "added_masks": _switch_attribute("engine", "added_masks", _find_tree_obstacle),
    "fused_norms": _switch_layers(FusedNorm, _find_norms, _find_norm_obstacle),
    "lean_adapters": _switch_layers(LeanLayer, find_adapted, find_adapter_obstacle),
    "fused_adam": _switch_attribute("optimizer", "fused", _find_adam_obstacle),
    "graphs": _switch_attribute("engine", "graphs", _find_tree_obstacle),
}
