"""Counts the bytes of tensors that are alive, on any device: also on ``meta``, where they have no data."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Live(TorchDispatchMode):
    """Within its context, ``now`` is the bytes of the tensors made there, and ``peak`` the most of them.

    Args:
        before: Tensors that were made before; views of them count nothing.
    """

    def __init__(self, before: Iterable[Tensor]) -> None:
        super().__init__()
        self.now = self.peak = 0
        self._before = [tensor.untyped_storage() for tensor in before]
        self._sizes = {storage._cdata: 0 for storage in self._before}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor) and (key := tensor.untyped_storage()._cdata) not in self._sizes:
                storage = tensor.untyped_storage()
                self._sizes[key] = storage.nbytes()
                weakref.finalize(storage, self._gone, key)
                self.now += storage.nbytes()
                self.peak = max(self.peak, self.now)
        return out

    def _gone(self, key: int) -> None:
        self.now -= self._sizes.pop(key)


class EfficientAttention(torch.autograd.Function):
    """The tensors of CUDA's memory-efficient attention, which a mask leads to, without their values.

    Of PyTorch's kernel: the mask as numbers to add, the attended values, and a logarithm per query, all of
    which are kept; on the way back the three gradients, each summed in float32 before.
    """

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
        bias = torch.empty(mask.shape, dtype=q.dtype, device=q.device)
        (b, heads, n, size), width = q.shape, -(-q.shape[2] // 32) * 32
        out = torch.empty(b, n, heads, size, dtype=q.dtype, device=q.device).transpose(1, 2)
        logarithms = torch.empty(b, heads, width, device=q.device)
        ctx.save_for_backward(q, k, v, bias, out, logarithms)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        *inputs, _, _, logarithms = ctx.saved_tensors
        workspace = [
            torch.empty_like(logarithms),
            *(torch.empty_like(x, dtype=torch.float32) for x in inputs),
        ]
        gradients = [torch.empty_like(x) for x in inputs]
        del workspace
        return *gradients, None
