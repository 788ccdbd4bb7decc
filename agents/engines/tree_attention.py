"""Attention over a token tree, as an attention function of transformers.

It is registered under ``NAME``. A model that is set to it attends as usual unless a forward is given a
``Layout`` as its argument ``tree``; then its input is the one row of that layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from gamespiel.agents.engines.token_tree import Tiles

NAME = "gamespiel_tree"

KeysValues = tuple[Tensor, Tensor]
"""Keys and values of a layer, (heads, tokens, size of a head) each."""


class _Part(NamedTuple):
    """Tiles as tensors; see ``Tiles``."""

    queries: Tensor
    keys: Tensor
    allowed: Tensor
    query_depths: Tensor
    key_depths: Tensor


@dataclass
class Layout:
    """What a forward over the row of a token tree needs to know in its attention.

    Attributes:
        parts: The row's tiles.
        back: Where each token of the row stands among the tiles' queries, int64 (n,).
        stored: Keys and values of the tokens before the row, by layer.
        kept: Takes the row's keys and values by layer, if it is not None.
    """

    parts: list[_Part]
    back: Tensor
    stored: dict[int, KeysValues] = field(default_factory=dict)
    kept: dict[int, KeysValues] | None = None
    _masks: dict[tuple[int, int, int | None], Tensor] = field(default_factory=dict)

    @classmethod
    def of(cls, tiles: Sequence[Tiles], device: torch.device) -> Layout:
        queries = np.concatenate([part.queries.ravel() for part in tiles])
        # A short tile repeats its first query: the last to write wins, so write the real places last.
        back = np.empty(int(queries.max()) + 1, dtype=np.int64)
        back[queries[::-1]] = np.arange(len(queries))[::-1]
        parts = [
            _Part(*(torch.from_numpy(array).to(device) for array in vars(part).values())) for part in tiles
        ]
        return cls(parts, torch.from_numpy(back).to(device))

    def mask(self, index: int, groups: int, window: int | None) -> Tensor:
        """Returns the mask of a part, bool (b, 1, groups * t, k); layers with the same window share it."""
        known = (index, groups, window)
        if known not in self._masks:
            part = self.parts[index]
            allowed = part.allowed
            if window is not None:
                allowed = allowed & (part.query_depths[:, :, None] - part.key_depths[:, None, :] < window)
            self._masks[known] = allowed.repeat(1, groups, 1)[:, None]
        return self._masks[known]


def tree_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    tree: Layout | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """Attends within a tree: query (1, heads, n, size), key and value (1, key heads, n, size).

    Returns:
        The attended values (1, n, heads, size), and no weights.
    """
    if tree is None:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        attended: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **kwargs
        )
        return attended
    layer: int = module.layer_idx  # type: ignore[assignment]
    queries, keys, values = query[0], key[0], value[0]
    if tree.kept is not None:
        tree.kept[layer] = (keys, values)
    if layer in tree.stored:
        old_keys, old_values = tree.stored[layer]
        keys, values = torch.cat([old_keys, keys], 1), torch.cat([old_values, values], 1)
    heads, _, size = queries.shape
    groups = heads // len(keys)
    outputs = []
    for index, part in enumerate(tree.parts):
        b, t = part.queries.shape
        # Heads that share keys become further queries: then keys are not repeated, and every kernel does.
        q = queries.index_select(1, part.queries.flatten()).view(len(keys), groups, b, t, size)
        q = q.permute(2, 0, 1, 3, 4).reshape(b, len(keys), groups * t, size)
        k, v = (
            x.index_select(1, part.keys.flatten()).view(len(keys), b, -1, size).transpose(0, 1)
            for x in (keys, values)
        )
        mask = tree.mask(index, groups, sliding_window)
        out = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scaling)
        out = out.view(b, len(keys), groups, t, size).permute(0, 3, 1, 2, 4)
        outputs.append(out.reshape(b * t, heads, size))
    return torch.cat(outputs).index_select(0, tree.back)[None], None


def register() -> None:
    """Makes the function known to transformers; a second call changes nothing."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, tree_attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
