"""The engine that reads what sequences share once: their tokens are one row, attended to as a tree.

Long beginnings (system text, rules, seat) are common to the prompts of a batch. In a forward of this engine
each distinct beginning is read once, at every level of sharing, with gradients too. The gradient of a shared
token is the sum over the sequences that continue it. Linear layers see no padding. Sequences with little in
common are read alone.

The last layer is computed only for the tokens whose states are read: no later layer needs the others, whose
keys and values come from the layer's input. In a model of two layers, the last feed-forward part is more than
a third of all products.

The idea is known from prefix grouping and tree training for policy gradients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from gamespiel.agents import transfer
from gamespiel.agents.engines.base import (
    Engine,
    UnsupportedModelError,
    find_obstacle,
    layers_of,
)
from gamespiel.agents.engines.budgets import Budgets
from gamespiel.agents.engines.padded import PaddedEngine
from gamespiel.agents.engines.token_tree import (
    Indices,
    Known,
    TokenTree,
    choose_tile_width,
    count_distinct,
    find_known,
    group_sequences,
    tile_continuations,
    tile_fresh,
    tile_paths,
)
from gamespiel.agents.engines.tree_attention import (
    NAME,
    Ending,
    KeysValues,
    Layout,
    WrittenKeys,
    empty_mask,
    register,
)
from gamespiel.agents.models.memory_plan import TILE
from gamespiel.agents.tokens import Tokens

GATHERED = 4
"""The most keys that a row's tiles gather, per token of the row: autograd keeps them, in every layer."""

WORTH = 0.8
"""Distinct tokens of a forward over all its tokens, above which its sequences are read alone.

Attention along one path is faster than on a tree of tiles, which then has little to save.
"""

ALONE = 1024
"""Tokens of a forward of sequences that are read alone: short ones fill it, and long ones have no padding."""

READ_FEW = 0.5
"""The largest share of a forward's tokens that is read for the last layer to compute only those."""

ENDING_TILE = 32
"""Tokens of the smallest tile of read tokens in the last layer."""

CONTINUED_TILE = 16
"""Tokens of a tile of continuations, which are few and share only their prompts."""


class SharedEngine(Engine):
    """Hidden states and logits of a causal language model, with shared beginnings read once.

    Raises:
        UnsupportedModelError: the model's attention is none that can be computed on a tree.
    """

    reading, keeps_prefixes = "shared", True

    def __init__(self, model: Any, budgets: Budgets | None = None, **kwargs: Any) -> None:
        super().__init__(model, budgets, **kwargs)
        if reason := find_obstacle(model):
            raise UnsupportedModelError(f"reading 'shared': {reason}; allowed: reading 'padded'")
        checkpointing = kwargs.get("gradient_checkpointing", False)
        self._alone = _Alone(model, Budgets(ALONE), gradient_checkpointing=checkpointing)
        layers: list[Any] = layers_of(self.transformer)
        self._layers = len(layers)
        self._feed_forward: nn.Module = layers[-1].mlp  # which has this name in all plain families
        register()
        self.transformer.set_attn_implementation(NAME)  # type: ignore[operator]

    def chunks(self, sequences: Sequence[Tokens], budget: int | None = None) -> Iterator[list[int]]:
        return group_sequences(sequences, self.budgets.tokens_per_forward if budget is None else budget)

    def count(self, sequences: Sequence[Tokens]) -> int:
        return count_distinct(sequences)

    def _read_forward(
        self, sequences: Sequence[Tokens], rows: Sequence[int], positions: Sequence[int]
    ) -> Tensor:
        tree = TokenTree.build(sequences)
        if len(tree.tokens) > WORTH * sum(map(len, sequences)):
            self.tokens_read += sum(map(len, sequences))
            return self._alone.read(sequences, rows, positions)
        at = [tree.paths[row][position] for row, position in zip(rows, positions, strict=True)]
        return self._read_tree(tree, at)

    @torch.no_grad()
    def prefill(
        self, prompts: Sequence[Tokens], *, cache: bool, before: Sequence[TreePrefix] = ()
    ) -> tuple[Tensor, TreePrefix | None]:
        tree = TokenTree.build(prompts)
        last = [path[-1] for path in tree.paths]
        kv_cache: dict[int, KeysValues] | None = {} if cache else None
        known = find_known(tree, prompts, before)
        if known.used:
            stored = [before[at].stored for at in known.used]
            states = self._read_fresh(tree, np.searchsorted(known.fresh, last), known, stored, kv_cache)
        else:
            states = self._read_tree(tree, last, kv_cache)
        return states, None if kv_cache is None else TreePrefix(tree, kv_cache, prompts)

    def _read_fresh(
        self,
        tree: TokenTree,
        at: Indices,
        known: Known,
        stored: Sequence[dict[int, KeysValues]],
        kv_cache: dict[int, KeysValues] | None,
    ) -> Tensor:
        """Returns hidden states of some of a tree's fresh tokens, by their place among these.

        ``kv_cache`` takes the whole tree's keys and values.
        """
        layout = Layout.build(tile_fresh(tree, known.fresh, known.places, TILE), self.device)
        layout.stored = {layer: _join_keys([each[layer] for each in stored]) for layer in stored[0]}
        fresh: dict[int, KeysValues] = {}
        layout.kv_cache = None if kv_cache is None else fresh
        states = self._run_forward(tree.tokens[known.fresh], tree.depths[known.fresh], layout, at)
        places = transfer.send(known.places, self.device)
        for layer in list(fresh):
            keys, values = _join_keys([layout.stored.pop(layer), fresh.pop(layer)])
            assert kv_cache is not None
            kv_cache[layer] = keys.index_select(1, places), values.index_select(1, places)
        return states

    @torch.no_grad()
    def extend(self, prefix: TreePrefix, rows: Sequence[int], tokens: Sequence[Tokens]) -> Tensor:
        """Returns hidden states as ``Engine`` says; the budget counts the continuations."""
        parts, start, size = [], 0, 0
        for end, sequence in enumerate(tokens):
            size += len(sequence)
            if end > start and size > self.budgets.tokens_per_forward:
                parts.append(self._extend_forward(prefix, rows[start:end], tokens[start:end]))
                start, size = end, len(sequence)
        parts.append(self._extend_forward(prefix, rows[start:], tokens[start:]))
        return torch.cat(parts)

    def _extend_forward(self, prefix: TreePrefix, rows: Sequence[int], tokens: Sequence[Tokens]) -> Tensor:
        order = sorted(range(len(rows)), key=lambda i: int(prefix.tree.paths[rows[i]][-1]))
        paths = [prefix.tree.paths[rows[i]] for i in order]
        counts = [len(tokens[i]) for i in order]
        layout = Layout.build(tile_continuations(prefix.tree, paths, counts, CONTINUED_TILE), self.device)
        layout.stored = prefix.stored
        ids = np.concatenate([np.array(tokens[i], dtype=np.int64) for i in order])
        depths = np.concatenate([len(path) + np.arange(n) for path, n in zip(paths, counts, strict=True)])
        last = np.empty(len(order), dtype=np.int64)
        last[order] = np.cumsum(counts) - 1
        return self._run_forward(ids, depths, layout, last)

    @torch.no_grad()
    def grow(
        self, prefix: TreePrefix, rows: Sequence[int], tokens: Sequence[int]
    ) -> tuple[Tensor, TreePrefix]:
        if list(rows) != list(range(len(prefix.paths))):
            prefix = prefix.select(rows, transfer.send(rows, self.device))
        if prefix.layout is None:
            prefix.layout = Layout.build(tile_paths(prefix.tree, prefix.paths, CONTINUED_TILE), self.device)
        parts, back = prefix.layout.parts, prefix.layout.back
        layout = Layout(parts, back, prefix.stored, written=prefix.written)
        depths = np.array([len(path) for path in prefix.paths]) + prefix.written.count
        ids = np.array(tokens, dtype=np.int64)
        states = self._run_forward(ids, depths, layout, np.arange(len(ids)))
        prefix.written.count += 1
        return states, prefix

    def room(self, prefix: TreePrefix) -> int:
        """Returns the rows of ``Engine.room``; half of the budget is theirs, however long the prompts are."""
        budget = self.budgets.tokens_per_forward
        left = max(budget - len(prefix.tree.tokens), budget // 2)
        return max(1, left // (prefix.written.count + 1))

    def _read_tree(
        self, tree: TokenTree, at: Sequence[int], kv_cache: dict[int, KeysValues] | None = None
    ) -> Tensor:
        """Returns hidden states of a tree's tokens at some places; ``kv_cache`` takes all keys and values."""
        every, width = np.arange(len(tree.tokens)), choose_tile_width(tree, TILE, GATHERED)
        layout = Layout.build(tile_fresh(tree, every, every, width), self.device)
        layout.kv_cache = kv_cache
        return self._run_forward(tree.tokens, tree.depths, layout, np.array(at, dtype=np.int64), tree)

    def _run_forward(
        self, ids: Indices, depths: Indices, layout: Layout, at: Indices, tree: TokenTree | None = None
    ) -> Tensor:
        """Returns the hidden states at places of the row, which may repeat: (k, hidden).

        If few are read, the last layer's feed-forward part computes only those, and its attention too, if the
        row is a whole ``tree``. A checkpointed layer is computed again on the way back, without this limit.
        """
        self.tokens_read += len(ids)
        rows = np.unique(at)
        limit: AbstractContextManager[None] = nullcontext()
        if 0 < len(rows) <= READ_FEW * len(ids) and not self._checkpointed:
            read = transfer.send(rows, self.device)
            limit = limit_rows(self._feed_forward, read)
            if tree is not None:
                width = choose_tile_width(tree, ENDING_TILE, GATHERED, rows)
                tiles = tile_fresh(tree, rows, np.arange(len(tree.tokens)), width)
                layout.ending = Ending(self._layers - 1, read, Layout.build(tiles, self.device))
        with self._checkpoint_layers(), limit:
            states: Tensor = self.transformer(
                input_ids=transfer.send(ids, self.device)[None],
                position_ids=transfer.send(depths, self.device)[None],
                attention_mask=empty_mask(self.device),  # the layout is used instead
                use_cache=False,
                tree=layout,
            ).last_hidden_state
        return states[0].index_select(0, transfer.send(at, self.device))


class _Alone(PaddedEngine):
    """The engine of sequences that have little in common, for the same model with ``tree_attention``."""

    def _causal_mask(self, width: int) -> Tensor | None:
        return None if self._must_reread(width) else empty_mask(self.device)


def _join_keys(parts: Sequence[KeysValues]) -> KeysValues:
    """Returns the keys and values of a layer, (heads, tokens, size), one after the other."""
    if len(parts) == 1:
        return parts[0]
    return torch.cat([keys for keys, _ in parts], 1), torch.cat([values for _, values in parts], 1)


class TreePrefix:
    """Keys and values of prompts that share beginnings, one of each distinct token, and of texts that grew.

    Attributes:
        tree: The prompts.
        stored: Keys and values of the prompts' tokens, by layer.
        prompts: The prompts.
        paths: Per text, positions of its prompt's tokens in the tree.
        written: Keys and values of the tokens that the texts have after their prompts.
        layout: The texts' next tokens in tiles, if they were laid out before.
    """

    def __init__(
        self,
        tree: TokenTree,
        stored: dict[int, KeysValues],
        prompts: Sequence[Tokens],
        paths: Sequence[Indices] | None = None,
        written: WrittenKeys | None = None,
    ) -> None:
        self.tree, self.stored, self.prompts = tree, stored, prompts
        self.paths = tree.paths if paths is None else paths
        self.written = WrittenKeys() if written is None else written
        self.layout: Layout | None = None

    def select(self, rows: Sequence[int], index: Tensor) -> TreePrefix:
        """Returns the given texts, which may repeat; ``index`` is ``rows`` as a tensor."""
        paths = [self.paths[row] for row in rows]
        return TreePrefix(self.tree, self.stored, self.prompts, paths, self.written.select(index))


def join_written(parts: Sequence[tuple[TreePrefix, Sequence[Tokens]]]) -> TreePrefix:
    """Returns the prefix of texts that were written to their ends, which a later prompt can go on from.

    Args:
        parts: Prefixes that grew from the same prompts, and whole texts without their last tokens, which
            nobody has read: one text per row of a prefix.
    """
    texts = [text for _, part_texts in parts for text in part_texts]
    first, tree = parts[0][0], TokenTree.build(texts)
    places, end = np.empty(len(tree.tokens), dtype=np.int64), len(first.tree.tokens)
    rows = iter(tree.paths)
    for prefix, _ in parts:
        for path in prefix.paths:
            written = end + np.arange(prefix.written.count)
            places[next(rows)] = np.concatenate([path, written])
            end += len(written)
    stored: dict[int, KeysValues] = {}
    for layer, known in first.stored.items():
        keys, values = _join_keys([known, *(prefix.written.flatten(layer) for prefix, _ in parts)])
        at = transfer.send(places, keys.device)
        stored[layer] = keys.index_select(1, at), values.index_select(1, at)
    return TreePrefix(tree, stored, texts)


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
