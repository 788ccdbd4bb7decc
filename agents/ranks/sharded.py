"""A base model whose decoder layers are divided among ranks, by PyTorch's ``fully_shard``."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard

from gamespiel.agents.ranks.alone import RanksError
from gamespiel.agents.ranks.lock_step import LockStep, Want

Begin = Callable[[], Any]
"""Begins an exchange of torch.distributed, and returns its work."""

NEEDED = (
    (FSDPModule, "set_custom_all_gather"),
    (FSDPModule, "reset_iter_state"),
    (dist, "all_gather_single"),
)
"""Names that the first versions of PyTorch with ``fully_shard`` lack."""


class ShardedLayers:
    """The decoder layers of a model, of whose frozen weights each rank has its part.

    Every parameter is divided by its rows. A layer is whole on a rank only while the rank reads it, forward
    or backward. Trained parameters, and all that is outside the layers, stay whole on every rank.

    Args:
        model: The model, with its adapters.
        layers: Its decoder layers, in the order of a forward.
        device: The device of the weights.
        spread: Returns the first rank's tensor on the device; other ranks give one of its shape and type.
        exchange: Begins an exchange, and waits for its end.

    Raises:
        RanksError: this version of PyTorch cannot do it.
    """

    def __init__(
        self,
        model: nn.Module,
        layers: Sequence[nn.Module],
        device: torch.device,
        spread: Callable[[Tensor], Tensor],
        exchange: Callable[[Begin], None],
    ) -> None:
        if missing := [name for owner, name in NEEDED if not hasattr(owner, name)]:
            raise RanksError(
                f"model.shard: PyTorch {torch.__version__} has no {missing[0]} of fully_shard; allowed: 2.13 "
                "or newer, or model.shard: false"
            )
        self._layers: list[Any] = list(layers)
        self._all_gather = _AllGather(exchange)
        self._read = set[int]()  # layers that this rank has read
        # Passes back call hooks, which wait for other ranks. Only the main thread hears signals meanwhile.
        torch.autograd.set_multithreading_enabled(False)
        mesh = DeviceMesh.from_group(dist.group.WORLD, device.type)  # type: ignore[arg-type]
        first_trained = _find_first_trained(model, layers)
        inside = {id(parameter) for layer in layers for parameter in layer.parameters()}
        _place([p for p in model.parameters() if id(p) not in inside], device, spread)
        for buffer in model.buffers():
            buffer.data = buffer.data.to(device)
        for index, layer in enumerate(self._layers):
            # One layer after the other, so that no more than one is whole.
            _place(layer.parameters(), device, spread)
            trained = {parameter for parameter in layer.parameters() if parameter.requires_grad}
            fully_shard(layer, mesh=mesh, reshard_after_forward=True, ignored_params=trained)
            layer.set_custom_all_gather(self._all_gather)
            # Before the hooks of ``fully_shard``, which then find the layer whole and gather nothing.
            layer.register_forward_pre_hook(partial(self._enter, index), prepend=True)
            layer.register_forward_hook(partial(self._leave, index), prepend=True)
        self.lock_step = LockStep(self, len(layers), first_trained, partial(_choose_greatest, exchange))

    # -- what the lock-step asks for -----------------------------------------------------------------------

    def gather(self, layer: int, on_begun: Callable[[], object]) -> None:
        self._all_gather.on_begun = on_begun
        try:
            self._layers[layer].unshard()
        except torch.OutOfMemoryError:
            # The tensors of a pass that failed may be in a cycle. PyTorch goes on where it was.
            gc.collect()
            torch.cuda.empty_cache()
            self._layers[layer].unshard()

    def free(self, layer: int) -> None:
        self._layers[layer].reshard()

    def reset(self) -> None:
        for index, layer in enumerate(self._layers):
            if index in self._read:
                layer.reset_iter_state()
            else:  # PyTorch has no state of a layer before its first forward
                layer.reshard()

    # -- what the model does -------------------------------------------------------------------------------

    def _enter(self, layer: int, module: nn.Module, given: tuple[Any, ...]) -> None:
        if _goes_back():
            return  # a checkpointed layer is computed again, and is whole
        if layer == 0:
            self.lock_step.begin(Want.FORWARD)
        self.lock_step.reach(layer)
        self._read.add(layer)

    def _leave(self, layer: int, module: nn.Module, given: tuple[Any, ...], output: Any) -> None:
        states: Tensor = output[0] if isinstance(output, tuple) else output
        if states.requires_grad and not _goes_back():
            states.register_hook(partial(self._enter_backward, layer))

    def _enter_backward(self, layer: int, gradient: Tensor) -> None:
        if layer == len(self._layers) - 1:
            self.lock_step.begin(Want.BACKWARD)
        self.lock_step.reach(layer)


class _AllGather:
    """The message that makes a layer whole, for ``FSDPModule.set_custom_all_gather``.

    PyTorch's own would wait in C++, where neither signals nor the failures of other ranks are heard.

    Args:
        exchange: Begins an exchange, and waits for its end.

    Attributes:
        on_begun: Called as soon as the message has begun.
    """

    def __init__(self, exchange: Callable[[Begin], None]) -> None:
        self._exchange = exchange
        self.on_begun: Callable[[], object] = lambda: None

    def allocate(self, size: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> Tensor:
        """Returns the place of the message."""
        return torch.empty(*size, dtype=dtype, device=device)

    def __call__(
        self, output_tensor: Tensor, input_tensor: Tensor, group: dist.ProcessGroup, async_op: bool = False
    ) -> None:
        def begin() -> Any:
            work = dist.all_gather_single(output_tensor, input_tensor, group=group, async_op=True)
            self.on_begun()
            return work

        self._exchange(begin)


def _choose_greatest(exchange: Callable[[Begin], None], number: int) -> int:
    """Returns the greatest of all ranks' numbers."""
    numbers = torch.tensor([number])
    exchange(lambda: dist.all_reduce(numbers, dist.ReduceOp.MAX, async_op=True))
    return int(numbers)


def _place(
    parameters: Sequence[nn.Parameter] | Iterator[nn.Parameter],
    device: torch.device,
    spread: Callable[[Tensor], Tensor],
) -> None:
    """Moves parameters to the device: frozen ones are the first rank's; trained ones are alike everywhere."""
    for parameter in parameters:
        own = parameter.data
        parameter.data = own.to(device) if parameter.requires_grad else spread(own)


def _find_first_trained(model: nn.Module, layers: Sequence[nn.Module]) -> int:
    """Returns the first layer whose output has a gradient."""
    trained = [any(p.requires_grad for p in layer.parameters()) for layer in layers]
    embedding: Any = model.get_input_embeddings()  # type: ignore[operator]
    if any(parameter.requires_grad for parameter in embedding.parameters()):
        return 0
    return trained.index(True) if any(trained) else len(layers)


def _goes_back() -> bool:
    """Returns whether autograd is going back, in which a checkpointed layer is computed again."""
    return torch._C._current_graph_task_id() != -1
