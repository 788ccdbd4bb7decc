"""The last layer's feed-forward part, computed only for the tokens whose states are read.

No later layer needs the other tokens' states, and their keys and values come from the layer's input. In a
model of two layers, the last feed-forward part is more than a third of all products. The other half of this,
the last layer's attention, is ``tree_attention.Ending``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from gamespiel.agents.engines.base import layers_of


def find_feed_forward(transformer: Any) -> nn.Module:
    """Returns the last layer's feed-forward part, which has the same name in all plain families."""
    last: Any = layers_of(transformer)[-1]
    part: nn.Module = last.mlp
    return part


@contextmanager
def limit_rows(feed_forward: nn.Module, rows: Tensor) -> Iterator[None]:
    """Within the context, forwards compute only some tokens of the part's input; others get 0.

    Args:
        feed_forward: A part that takes and gives one tensor, (1, n, hidden), and computes each token on its
            own.
        rows: The tokens, each once, int64 (m,).
    """
    shape = torch.Size()

    def narrow(_: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        nonlocal shape
        shape = inputs[0].shape
        return (inputs[0].index_select(1, rows), *inputs[1:])

    def widen(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        return output.new_zeros(shape).index_copy(1, rows, output)

    with ExitStack() as hooks:
        hooks.callback(feed_forward.register_forward_pre_hook(narrow).remove)
        hooks.callback(feed_forward.register_forward_hook(widen).remove)
        yield
