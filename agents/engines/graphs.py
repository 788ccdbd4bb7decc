"""Forwards without gradients on few padded shapes: a GPU captures each shape once, and then replays it.

A replay is one launch in place of thousands. It reads and writes the memory of the capture: so rows are
copied into it, and results out of it. Weights that change in place are seen, as by any forward.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gamespiel.agents import transfer
from gamespiel.agents.engines.token_tree import Indices, TokenTree
from gamespiel.agents.models.memory import is_out_of_memory
from task_gym.errors import TaskGymError

RUNGS = 2
"""Sizes per doubling: 64, 128, 192, 256, 384, 512, 768, ... On average a row grows by a sixth."""


class CaptureError(TaskGymError, RuntimeError):
    """A forward that CUDA cannot capture, such as one that waits for its own results."""


def round_up(number: int, rungs: int = RUNGS) -> int:
    """Returns the next size of a ladder with so many sizes per doubling; from 64 on, multiples of 64."""
    step = math.floor(rungs * math.log2(max(1, number)))
    while True:
        size = math.ceil(2 ** (step / rungs) - 1e-9)
        size = size if size < 64 else -(-size // 64) * 64
        if size >= number:
            return size
        step += 1


def round_row(tokens: int) -> int:
    """Returns the tokens of a row with its pads, at least 64."""
    return round_up(max(64, tokens))


def pad_row(tree: TokenTree) -> Indices:
    """Returns a tree's tokens, their depths and the ends of their subtrees, int64 (3, its padded size).

    A pad is a sequence of its own: it attends to itself, and nothing else attends to it.
    """
    n = len(tree.tokens)
    row = np.zeros((3, round_row(n)), dtype=np.int64)
    row[:, :n] = tree.tokens, tree.depths, tree.ends
    row[2, n:] = np.arange(n, row.shape[1]) + 1
    return row


class PaddedRows:
    """Reads trees of tokens as padded rows, on a GPU by graphs.

    A graph knows its weights by their address. Adapters that took the place of the learning ones have other
    addresses: they read padded rows without a graph. There is one more graph per shape without adapters.

    Args:
        forward: Returns hidden states (n, hidden) from the numbers of ``pad_row`` on its device. No result
            may depend on their values otherwise, and nothing may wait for the GPU.
        model: The model with its adapters, whose parameters with gradients are the ones that learn.
    """

    def __init__(self, forward: Callable[[Tensor], Tensor], model: Any) -> None:
        self._forward = forward
        self._learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._addresses = self._find_addresses()
        self._adapted: Any = next((layer for layer in model.modules() if hasattr(layer, "lora_A")), None)
        self._graphs: dict[tuple[int, bool], _Graph | None] = {}
        self._pool: Any = None
        self._lock = Lock()  # threads share the memory of rows and results

    def _find_addresses(self) -> list[int]:
        return [parameter.data_ptr() for parameter in self._learning]

    def read(self, tree: TokenTree, at: Sequence[int] | Indices, device: torch.device) -> Tensor:
        """Returns the hidden states of a tree's tokens ``at`` these places, (k, hidden)."""
        row, places = (transfer.send(each, device) for each in (pad_row(tree), np.array(at, dtype=np.int64)))
        with self._lock:
            return self._run(row).index_select(0, places)

    def _run(self, row: Tensor) -> Tensor:
        if not row.is_cuda or self._find_addresses() != self._addresses:
            return self._forward(row)
        key = row.shape[1], self._adapted is None or bool(self._adapted.disable_adapters)
        if key not in self._graphs:  # libraries prepare themselves in a first call, which is not captured
            self._graphs[key] = None
            return self._forward(row)
        graph = self._graphs[key]
        if graph is None:
            graph = self._graphs[key] = self._capture(row)
        return graph.replay(row)

    def _capture(self, row: Tensor) -> _Graph:
        # Replays follow each other, so the graphs share their temporary memory.
        self._pool = self._pool or torch.cuda.graph_pool_handle()
        try:
            return _Graph(self._forward, row, self._pool)
        except Exception as error:
            self._graphs, self._pool = {}, None  # they are memory too
            if is_out_of_memory(error):
                raise
            raise CaptureError(
                f"kernel 'graphs': CUDA cannot capture a forward of {row.shape[1]} tokens of this model: "
                f"{error}; allowed: model.kernels without 'graphs'"
            ) from error


class _Graph:
    """A captured forward of rows of one shape.

    Args:
        forward: See ``PaddedRows``.
        row: A row of the shape.
        pool: The memory that graphs share.
    """

    def __init__(self, forward: Callable[[Tensor], Tensor], row: Tensor, pool: Any) -> None:
        self._row, self._graph = row.clone(), torch.cuda.CUDAGraph()
        # Other threads may copy to the GPU meanwhile.
        with torch.cuda.graph(self._graph, pool=pool, capture_error_mode="thread_local"):
            self._states = forward(self._row)

    def replay(self, row: Tensor) -> Tensor:
        """Returns the states of a row, which the next replay of any graph overwrites."""
        self._row.copy_(row)
        self._graph.replay()
        return self._states
