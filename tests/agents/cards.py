"""A pretended GPU: tensors that say that they are on ``cuda:0``, and are computed on the CPU.

On a CPU all tensors are on one device, so a test cannot see an index or a mask that was left behind. Within
``card()``, what is made for ``cuda`` is an ``OnCard``, and an operation on tensors of both devices raises, as
CUDA's do. As with CUDA, numbers, indices and copies may come from the CPU. Values are those of the CPU, so
results can be compared. Kernels, memory and speed are not pretended.

Copies are as asynchronous as CUDA's: until the card has been waited for, a copy that does not wait has values
that mean nothing.
"""

from __future__ import annotations

import sys
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, ClassVar
from unittest import mock

import numpy as np
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from gamespiel.agents import policy as policy_module

CARD = torch.device("cuda", 0)
aten = torch.ops.aten
COPIES = (aten.copy_.default, aten.copy.default)
INDEXED = (aten.index.Tensor, aten.index_put_.default, aten.index_put.default, aten._index_put_impl_.default)
READS = (Tensor.cpu, Tensor.item, Tensor.__float__, Tensor.__bool__, Tensor.__int__, Tensor.numpy)
SIZED = (
    aten.nonzero.default, aten._unique2.default, aten.unique_dim.default, aten.unique_consecutive.default,
    aten.masked_select.default, aten.repeat_interleave.Tensor, aten.equal.default,
)  # fmt: skip
"""Operations whose results have a size, or a value, that the CPU must know."""


class OnCard(Tensor):
    """A tensor on the pretended GPU. To PyTorch's C++ it is on ``meta``, a device that needs no driver.

    Attributes:
        host: Its values, on the CPU.
    """

    host: Tensor
    device = property(lambda self: CARD)  # type: ignore[assignment]
    is_cuda = property(lambda self: True)  # type: ignore[assignment]
    is_meta = property(lambda self: False)  # type: ignore[assignment]
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, host: Tensor) -> OnCard:
        tensor: OnCard = Tensor._make_wrapper_subclass(
            cls, host.shape, strides=host.stride(), storage_offset=host.storage_offset(), dtype=host.dtype,
            device="meta",
        )  # fmt: skip
        tensor.host = host
        if Seen.weighing:
            _weigh(tensor)
        return tensor

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})

    @property
    def data(self) -> Tensor:  # type: ignore[override]
        return self.detach()

    @data.setter
    def data(self, value: OnCard) -> None:
        self.host = value.host

    def data_ptr(self) -> int:
        return self.host.data_ptr()

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def __getitem__(self, key: Any) -> Any:
        return Tensor.__getitem__(self, _indices(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        Tensor.__setitem__(self, _indices(key), value)


class Seen:
    """Counts of operations on the card.

    Attributes:
        waits: Waits of the CPU until the card has done all the work queued before, counted per place in the
            code: for copies to and from the card, but for those of pinned memory that do not wait; for
            results of unknown size; and for the card as a whole.
        working: Whether a new tensor on ``meta`` counts as one on the card. Tests set it after loading
            models, because transformers itself uses ``meta`` while it loads.
        weighing: Whether the memory of new tensors is counted.
        held: Bytes of those that are alive; tensors that share their memory count once.
        peak: The most bytes that were alive.
    """

    waits: ClassVar[Counter[str]] = Counter()
    working = False
    weighing = False
    held = 0
    peak = 0
    _owners: ClassVar[Counter[int]] = Counter()
    _under_way: ClassVar[list[tuple[Tensor, Tensor]]] = []


def _weigh(tensor: OnCard) -> None:
    """Counts a tensor's memory until the last tensor that has it is gone."""
    memory = tensor.host.untyped_storage()
    where, size = memory.data_ptr(), memory.nbytes()
    Seen.held += 0 if Seen._owners[where] else size
    Seen._owners[where] += 1
    Seen.peak = max(Seen.peak, Seen.held)

    def gone() -> None:
        Seen._owners[where] -= 1
        Seen.held -= 0 if Seen._owners[where] else size

    weakref.finalize(tensor.host, gone)  # PyTorch swaps no tensors that have weak references themselves


@contextmanager
def card() -> Iterator[type[Seen]]:
    """Makes ``cuda`` the pretended GPU within the context."""
    Seen.waits.clear()
    Seen.working = Seen.weighing = False
    swapped = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)
    functions: dict[str, Callable[[], Any]] = {
        "is_available": lambda: True, "device_count": lambda: 1, "empty_cache": lambda: None,
        "_lazy_init": lambda: None, "current_stream": lambda device=None: _Stream(),
        "is_bf16_supported": lambda including_emulation=True: True,
        "get_rng_state": lambda device: None, "set_rng_state": lambda state, device: None,
    }  # fmt: skip
    try:
        with mock.patch.multiple(torch.cuda, **functions), _reading_when_loaded(), _Made(), _Computed():
            yield Seen
    finally:
        Seen.working = Seen.weighing = False
        torch.__future__.set_swap_module_params_on_conversion(swapped)


@contextmanager
def _reading_when_loaded() -> Iterator[None]:
    """Counts new tensors on ``meta`` when a loaded model is tried, which is before a test can say so."""

    def check(*arguments: Any) -> None:
        before, Seen.working = Seen.working, True
        try:
            check_base(*arguments)
        finally:
            Seen.working = before

    check_base = policy_module.check_base
    with mock.patch.object(policy_module, "check_base", check):
        yield


class _Stream:
    """The card's only stream."""

    def synchronize(self) -> None:
        _wait()


class _Computed(TorchDispatchMode):
    """Runs operations that make tensors without being given any."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return run(func, args, kwargs or {})


class _Made(TorchFunctionMode):
    """Makes tensors for the card before C++ reads its name, for which it would want a driver."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is Tensor.to:
            named = [x for x in (*args[1:], kwargs.get("device")) if isinstance(x, str | torch.device)]
            if named and isinstance(args[0], OnCard) and torch.device(named[0]).type == "meta":
                return args[0]  # as C++ names the card
            if named and torch.device(named[0]).type == "cuda":
                dtypes = [x for x in (*args[1:], kwargs.get("dtype")) if isinstance(x, torch.dtype)]
                typed = args[0].to(*dtypes) if dtypes else args[0]
                if not isinstance(args[0], OnCard) and not (
                    _is_pinned(args[0]) and kwargs.get("non_blocking")
                ):
                    _wait()
                return typed if isinstance(typed, OnCard) else OnCard(typed.detach().clone())
            if named and isinstance(args[0], OnCard):
                return _copy_later(args[0].host) if kwargs.get("non_blocking") else args[0].cpu()
        elif func is Tensor.pin_memory:
            return _pin(args[0])
        elif func in READS and isinstance(args[0], OnCard):
            if func is Tensor.numpy:
                raise TypeError("can't convert cuda:0 device type tensor to numpy")
            _wait()
            return args[0].host.detach().clone() if func is Tensor.cpu else func(args[0].host.detach())
        elif kwargs.get("device") is not None and torch.device(kwargs["device"]).type == "cuda":
            if func in (torch.tensor, torch.as_tensor) and args[0] != []:
                _wait()
            kwargs["device"] = torch.device("cpu")
            tensor = func(*args, **kwargs)
            return tensor if isinstance(tensor, OnCard) else OnCard(tensor)
        return func(*args, **kwargs)


def run(func: Any, args: Any, kwargs: Any) -> Any:
    """Returns an operation's result, on the device of the tensors that it was given or on the one it names.

    Raises:
        RuntimeError: the tensors are on two devices.
    """
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
    there = [x for x in tensors if isinstance(x, OnCard)]
    named = None if kwargs.get("device") is None else torch.device(kwargs["device"]).type
    if named == "meta" and (there or Seen.working):
        named = "cuda"
    if named == "cuda":
        kwargs = kwargs | {"device": torch.device("cpu")}
    where = named or ("cuda" if there else "cpu")
    if func in COPIES:
        where = "cuda" if isinstance(args[0], OnCard) else "cpu"
    elif there and func is not aten._to_copy.default:
        checked = tree_leaves(args[2:]) if func in INDEXED and isinstance(args[0], OnCard) else tensors
        if any(isinstance(x, Tensor) and not isinstance(x, OnCard) and x.dim() for x in checked):
            raise RuntimeError(f"{func}: expected all tensors to be on the same device, found cuda:0 and cpu")
    is_read = where == "cpu" or func is aten._local_scalar_dense.default
    if there and (is_read or _must_wait(func, args)):
        _wait()
    same = {id(x.host): x for x in there}

    def out(x: Any) -> Any:
        if not isinstance(x, Tensor) or isinstance(x, OnCard) or where != "cuda":
            return x
        return same[id(x)] if id(x) in same else OnCard(x)

    cpu_inputs = tree_map(lambda x: x.host if isinstance(x, OnCard) else x, (args, kwargs))
    return tree_map(out, func(*cpu_inputs[0], **cpu_inputs[1]))


def _indices(key: Any) -> Any:
    """Returns an index whose lists and arrays are on the card, where C++ would put them."""
    if isinstance(key, tuple):
        return tuple(map(_indices, key))
    if isinstance(key, list | np.ndarray):
        _wait()
        return OnCard(torch.as_tensor(key))
    return key


def _must_wait(func: Any, args: Any) -> bool:
    """Returns whether the CPU waits for the card in an operation whose result stays there."""
    if func in COPIES:
        return not isinstance(args[1], OnCard) and not (_is_pinned(args[1]) and args[2:3] == (True,))
    if func in INDEXED:
        indices = [x for x in tree_leaves(args[1]) if isinstance(x, Tensor)]
        return any(x.dtype == torch.bool or not isinstance(x, OnCard) for x in indices)
    return func in SIZED


def _is_pinned(tensor: Tensor) -> bool:
    return getattr(tensor, "pinned_for_card", False)


def _pin(tensor: Tensor) -> Tensor:
    if isinstance(tensor, OnCard):
        raise RuntimeError("cannot pin 'torch.cuda.FloatTensor', only dense CPU tensors can be pinned")
    pinned: Any = tensor.detach().clone()
    pinned.pinned_for_card = True
    return pinned


def _copy_later(host: Tensor) -> Tensor:
    """Returns a copy on the CPU that has its values when the card has been waited for."""
    copy = torch.full_like(host.detach(), torch.nan if host.is_floating_point() else 0)
    Seen._under_way.append((copy, host.detach().clone()))
    return copy


def _wait() -> None:
    """Counts a wait at the innermost function of the project's own code, and ends copies under way."""
    for copy, values in Seen._under_way:
        copy.copy_(values)
    Seen._under_way.clear()
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("gamespiel."):
            Seen.waits[f"{name}.{frame.f_code.co_name}"] += 1
            return
        frame = frame.f_back
