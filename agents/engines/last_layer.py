"""The last layer's feed-forward part, computed only for the tokens whose states are read.

Nothing comes after the last layer that would need the states of the others: their keys and values are made
from its input. In a model of two layers its feed-forward part is a third of all products.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from gamespiel.agents.engines.base import layers_of


def find_feed_forward(transformer: Any) -> nn.Module | None:
    """Returns the last layer's feed-forward part, or None if it has none by the usual name."""
    part = getattr(layers_of(transformer)[-1], "mlp", None)
    return part if isinstance(part, nn.Module) else None


@contextmanager
def computed_for(feed_forward: nn.Module, rows: Tensor) -> Iterator[None]:
    """Makes the part compute some tokens of its input (1, n, hidden) within the context, and 0 for the rest.

    Args:
        feed_forward: A part that takes and gives one tensor, and computes each token on its own.
        rows: The tokens, each once, int64 (m,).
    """

    shape = torch.Size()

    def narrow(_: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        nonlocal shape
        shape = inputs[0].shape
        return (inputs[0].index_select(1, rows), *inputs[1:])

    def widen(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        return output.new_zeros(shape).index_copy(1, rows, output)

    hooks = feed_forward.register_forward_pre_hook(narrow), feed_forward.register_forward_hook(widen)
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
