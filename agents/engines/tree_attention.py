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

from gamespiel.agents import transfer
from gamespiel.agents.engines.token_tree import Array, Tiles

NAME = "gamespiel_tree"

FIRST_WRITTEN = 16
"""Tokens for which there is place in ``WrittenKeys`` at first."""

KeysValues = tuple[Tensor, Tensor]
"""Keys and values of a layer, (heads, tokens, size of a head) each."""


class WrittenKeys:
    """Keys and values of tokens that were written one by one, as many in each of n texts.

    Attributes:
        count: Tokens per text.
    """

    def __init__(self) -> None:
        self.count = 0
        self._layers: dict[int, KeysValues] = {}

    @property
    def device(self) -> torch.device:
        """The device of what was put; there must be something."""
        return next(iter(self._layers.values()))[0].device

    def put(self, layer: int, new: KeysValues) -> KeysValues:
        """Takes keys and values of one more token, (heads, n, size); returns all that the layer has.

        Their shape is (n, heads, count + 1, size). The caller raises ``count`` after the last layer.
        """
        held = self._layers.get(layer)
        if held is None or held[0].shape[2] == self.count:
            held = self._layers[layer] = (
                self._grow_buffer(layer, 0, new[0]),
                self._grow_buffer(layer, 1, new[1]),
            )
        for buffer, x in zip(held, new, strict=True):
            buffer[:, :, self.count] = x.transpose(0, 1)
        keys, values = (buffer[:, :, : self.count + 1] for buffer in held)
        return keys, values

    def _grow_buffer(self, layer: int, index: int, new: Tensor) -> Tensor:
        """Returns a buffer of twice the tokens, so that most tokens are written without a copy."""
        heads, n, size = new.shape
        buffer = new.new_empty(n, heads, max(FIRST_WRITTEN, 2 * self.count), size)
        if self.count:
            buffer[:, :, : self.count] = self._layers[layer][index]
        return buffer

    def flatten(self, layer: int) -> KeysValues:
        """Returns a layer's keys and values as (heads, n * count, size), text after text."""
        keys, values = (buffer[:, :, : self.count].transpose(0, 1) for buffer in self._layers[layer])
        return keys.flatten(1, 2), values.flatten(1, 2)

    def select(self, rows: Tensor) -> WrittenKeys:
        """Returns the given texts, which may repeat."""
        chosen = WrittenKeys()
        chosen.count = self.count
        for layer, (keys, values) in self._layers.items():
            chosen._layers[layer] = keys.index_select(0, rows), values.index_select(0, rows)
        return chosen


class Ending(NamedTuple):
    """The tokens that the last layer computes: those whose states are read.

    Attributes:
        layer: Index of the last layer.
        rows: The tokens by place in the row, ascending, int64 (m,).
        layout: Their arrangement as a row of their own, with the keys of the whole row.
    """

    layer: int
    rows: Tensor
    layout: Layout


@dataclass
class Layout:
    """The arrangement of a token tree's row for attention.

    Attributes:
        parts: The row's tiles.
        back: Position of each token of the row among the tiles' queries, int64 (n,).
        stored: Keys and values of the tokens before the row, by layer.
        kv_cache: Takes the row's keys and values by layer, if it is not None.
        written: If it is not None, the row's tokens are one of each text, at the places of ``queries``. They
            attend to ``keys`` among the stored tokens, and to those that their own text has in ``written``.
        ending: The tokens that attend in the last layer, if not all do. The others get 0 there.
    """

    parts: list[Tiles[Tensor]]
    back: Tensor
    stored: dict[int, KeysValues] = field(default_factory=dict)
    kv_cache: dict[int, KeysValues] | None = None
    written: WrittenKeys | None = None
    ending: Ending | None = None
    _masks: dict[tuple[int, int, int | None], Tensor] = field(default_factory=dict)

    @classmethod
    def build(cls, tiles: Sequence[Tiles[Array]], device: torch.device) -> Layout:
        queries = np.concatenate([part.queries.ravel() for part in tiles])
        # A short tile repeats its first query: the last to write wins, so write the real places last.
        back = np.empty(int(queries.max()) + 1, dtype=np.int64)
        back[queries[::-1]] = np.arange(len(queries))[::-1]
        parts = [Tiles(*(transfer.send(array, device) for array in part)) for part in tiles]
        return cls(parts, transfer.send(back, device))

    def mask(self, index: int, groups: int, window: int | None) -> Tensor:
        """Returns the mask of a part, bool (b, 1, groups * t, k), true = attends.

        Layers with the same window share it.
        """
        known = (index, groups, window)
        if known not in self._masks:
            part = self.parts[index]
            allowed = part.allowed
            if window is not None:
                before = 0 if self.written is None else self.written.count
                distance = part.query_depths[:, :, None] + before - part.key_depths[:, None, :]
                allowed = allowed & (distance < window)
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

    Without a tree, an empty mask means a causal one.

    Returns:
        The attended values (1, n, heads, size), and no weights.
    """
    if tree is None:
        if attention_mask is not None and not attention_mask.shape[-1]:
            attention_mask = None
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        attended: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **kwargs
        )
        return attended
    layer: int = module.layer_idx  # type: ignore[assignment]
    queries, keys, values = query[0], key[0], value[0]
    if tree.kv_cache is not None:
        tree.kv_cache[layer] = (keys, values)
    if tree.written is not None:
        return _attend_one_more(tree, layer, queries, (keys, values), scaling, sliding_window), None
    if layer in tree.stored:
        old_keys, old_values = tree.stored[layer]
        keys, values = torch.cat([old_keys, keys], 1), torch.cat([old_values, values], 1)
    if tree.ending is None or layer != tree.ending.layer:
        return _attend(tree, queries, keys, values, scaling, sliding_window)[None], None
    rows, end_queries = tree.ending.rows, queries.index_select(1, tree.ending.rows)
    read = _attend(tree.ending.layout, end_queries, keys, values, scaling, sliding_window)
    return read.new_zeros(queries.shape[1], *read.shape[1:]).index_copy(0, rows, read)[None], None


def _attend(
    tree: Layout, queries: Tensor, keys: Tensor, values: Tensor, scaling: float | None, window: int | None
) -> Tensor:
    """Returns the attended values of a layout's queries (heads, n, size), in tiles: (n, heads, size)."""
    heads, _, size = queries.shape
    groups = heads // len(keys)
    outputs = []
    for index, part in enumerate(tree.parts):
        b, t = part.queries.shape
        q, k, v = _gather_tiles(part, queries, keys, values)
        mask = tree.mask(index, groups, window)
        out = scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scaling)
        out = out.view(b, len(keys), groups, t, size).permute(0, 3, 1, 2, 4)
        outputs.append(out.reshape(b * t, heads, size))
    return torch.cat(outputs).index_select(0, tree.back)


def _gather_tiles(
    part: Tiles[Tensor], queries: Tensor, keys: Tensor, values: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns queries (b, key heads, groups * t, size), and keys and values (b, key heads, k, size)."""
    (b, t), (heads, _, size) = part.queries.shape, queries.shape
    # Heads that share keys become further queries: then keys are not repeated, and every kernel does.
    q = queries.index_select(1, part.queries.flatten()).view(len(keys), heads // len(keys), b, t, size)
    q = q.permute(2, 0, 1, 3, 4).reshape(b, len(keys), -1, size)
    k, v = (
        x.index_select(1, part.keys.flatten()).view(len(keys), b, -1, size).transpose(0, 1)
        for x in (keys, values)
    )
    return q, k, v


class _Attended(NamedTuple):
    """Attention to some of a query's keys, to be merged with attention to others; all float32.

    Attributes:
        values: Values summed with the weights exp(score - peak), (..., queries, size).
        weight: Sum of the weights, (..., queries, 1).
        peak: (..., queries, 1).
    """

    values: Tensor
    weight: Tensor
    peak: Tensor

    @classmethod
    def attend(cls, q: Tensor, k: Tensor, v: Tensor, scale: float, mask: Tensor | None = None) -> _Attended:
        scores = (q.float() @ k.float().mT) * scale
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        # If nothing is allowed, the weights are 0 and not NaN.
        peak = scores.amax(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).min)
        weights = (scores - peak).exp()
        return cls(weights @ v.float(), weights.sum(-1, keepdim=True), peak)

    def merge(self, other: _Attended) -> Tensor:
        peak = torch.maximum(self.peak, other.peak)
        one, two = (self.peak - peak).exp(), (other.peak - peak).exp()
        return (self.values * one + other.values * two) / (self.weight * one + other.weight * two)


def _attend_one_more(
    tree: Layout, layer: int, queries: Tensor, new: KeysValues, scaling: float | None, window: int | None
) -> Tensor:
    """Attends from one more token of each text: to its prompt in tiles, and to its own tokens in a batch.

    Prompts' keys are gathered once per tile, and the texts' own are read where they are.

    Args:
        queries: (heads, n, size).
        new: Keys and values of the tokens, (key heads, n, size) each.

    Returns:
        The attended values (1, n, heads, size).
    """
    assert tree.written is not None
    heads, n, size = queries.shape
    keys, values = tree.stored[layer]
    groups, scale = heads // len(keys), size**-0.5 if scaling is None else scaling
    own_keys, own_values = tree.written.put(layer, new)
    if window is not None:
        own_keys, own_values = own_keys[:, :, -window:], own_values[:, :, -window:]
    q = queries.view(len(keys), groups, n, size).permute(2, 0, 1, 3)
    continuation = _Attended.attend(q, own_keys, own_values, scale)
    parts = []
    for index, part in enumerate(tree.parts):
        b, t = part.queries.shape
        tiled = _gather_tiles(part, queries, keys, values)
        shared = _Attended.attend(*tiled, scale, tree.mask(index, groups, window))
        # From (b, key heads, groups * t, ...) to a row per query, (b * t, key heads, groups, ...).
        split = [x.view(b, len(keys), groups, t, -1).permute(0, 3, 1, 2, 4) for x in shared]
        parts.append([x.reshape(b * t, len(keys), groups, -1) for x in split])
    prompt = _Attended(*(torch.cat(x).index_select(0, tree.back) for x in zip(*parts, strict=True)))
    return continuation.merge(prompt).to(queries.dtype).reshape(1, n, heads, size)


def empty_mask(device: torch.device) -> Tensor:
    """Returns a mask of four dimensions, which transformers takes as it is and makes none."""
    return torch.empty(1, 1, 1, 0, device=device)


def register() -> None:
    """Makes the function known to transformers; a second call changes nothing."""
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, tree_attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
