"""The engine that reads every sequence on its own, those of about the same length in one forward.

Sequences are padded on the right. Attention is causal and pads come last, so no real token sees a pad and no
attention mask is needed. Only in an extended cache are pads between prompt and continuation; there they are
masked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gamespiel.agents import transfer
from gamespiel.agents.engines.base import ContextLengthError, Engine
from gamespiel.agents.engines.budgets import Budgets
from gamespiel.agents.tokens import Tokens

if TYPE_CHECKING:
    from transformers import DynamicCache


class PaddedEngine(Engine):
    """Hidden states and logits of a causal language model, with every sequence read on its own."""

    reading = "padded"

    def __init__(self, model: Any, budgets: Budgets | None = None, **kwargs: Any) -> None:
        super().__init__(model, budgets, **kwargs)
        config = self.transformer.config
        slides = "sliding_attention" in (getattr(config, "layer_types", None) or ("sliding_attention",))
        self._window: int | None = getattr(config, "sliding_window", None) if slides else None

    def _read_forward(
        self, sequences: Sequence[Tokens], rows: Sequence[int], positions: Sequence[int]
    ) -> Tensor:
        ids = self._pad_rows(sequences)
        with self._checkpoint_layers():
            states: Tensor = self.transformer(
                input_ids=ids, attention_mask=self._causal_mask(ids.shape[1]), use_cache=False
            ).last_hidden_state
        return states[transfer.send(rows, states.device), transfer.send(positions, states.device)]

    def _causal_mask(self, width: int) -> Tensor | None:
        """Returns the mask of whole rows; without one, transformers makes it, and waits for a GPU."""
        return None

    def chunks(self, sequences: Sequence[Tokens], budget: int | None = None) -> Iterator[list[int]]:
        """Yields indices of sequences of similar length; the budget counts padding."""
        budget = self.budgets.tokens_per_forward if budget is None else budget
        chunk: list[int] = []
        for row in sorted(range(len(sequences)), key=lambda row: -len(sequences[row])):
            longest = len(sequences[chunk[0]]) if chunk else 0
            if chunk and longest * (len(chunk) + 1) > budget:
                yield chunk
                chunk = []
            chunk.append(row)
        if chunk:
            yield chunk

    def count(self, sequences: Sequence[Tokens]) -> int:
        return len(sequences) * max(map(len, sequences))

    def _must_reread(self, width: int) -> bool:
        """Returns whether a cache of ``width`` tokens cannot be continued.

        A sliding window would count the pads between prompt and continuation, and layers that are not plain
        attention keep more than keys and values.
        """
        return not self._plain or (self._window is not None and width > self._window)

    @torch.no_grad()
    def prefill(
        self, prompts: Sequence[Tokens], *, cache: bool, before: Sequence[Any] = ()
    ) -> tuple[Tensor, Prefix | None]:
        lengths = transfer.send([len(prompt) for prompt in prompts], self.device)
        # Made here, it keeps all tokens of layers with a sliding window too.
        kv_cache = _make_cache() if cache and self._plain else None
        out = self.transformer(
            input_ids=self._pad_rows(prompts), use_cache=kv_cache is not None, past_key_values=kv_cache
        )
        last = out.last_hidden_state[torch.arange(len(prompts), device=self.device), lengths - 1]
        return last, Prefix(prompts, lengths, kv_cache) if cache else None

    @torch.no_grad()
    def extend(self, prefix: Prefix, rows: Sequence[int], tokens: Sequence[Tokens]) -> Tensor:
        """Returns hidden states as ``Engine`` says; the budget counts the prompts too."""
        if self._must_reread(prefix.width + max(map(len, tokens))):
            whole = [(*prefix.prompts[row], *more) for row, more in zip(rows, tokens, strict=True)]
            return self.read(whole, range(len(whole)), [len(sequence) - 1 for sequence in whole])
        parts, start, longest = [], 0, 0
        for end, sequence in enumerate(tokens):
            longest = max(longest, len(sequence))
            if end > start and (prefix.width + longest) * (end + 1 - start) > self.budgets.tokens_per_forward:
                parts.append(self._extend_forward(prefix, rows[start:end], tokens[start:end]))
                start, longest = end, len(sequence)
        parts.append(self._extend_forward(prefix, rows[start:], tokens[start:]))
        return torch.cat(parts)

    def _extend_forward(self, prefix: Prefix, rows: Sequence[int], tokens: Sequence[Tokens]) -> Tensor:
        device = self.device
        index = transfer.send(rows, device)
        cache = prefix.select(index)
        prompt_lengths = prefix.lengths[index]
        counts = transfer.send([len(t) for t in tokens], device)
        steps = torch.arange(max(map(len, tokens)), device=device)
        slots = torch.arange(prefix.width, device=device)
        mask = torch.cat([slots < prompt_lengths[:, None], steps < counts[:, None]], dim=1)
        states = self.transformer(
            input_ids=self._pad_rows(tokens),
            attention_mask=mask.long(),
            position_ids=prompt_lengths[:, None] + steps,
            past_key_values=cache,
            use_cache=True,
        ).last_hidden_state
        return states[torch.arange(len(rows), device=device), counts - 1]

    @torch.no_grad()
    def grow(self, prefix: Prefix, rows: Sequence[int], tokens: Sequence[int]) -> tuple[Tensor, Prefix]:
        texts = [(*prefix.prompts[row], token) for row, token in zip(rows, tokens, strict=True)]
        device = self.device
        index = transfer.send(rows, device)
        lengths = prefix.lengths[index] + 1
        if prefix.cache is None or self._must_reread(prefix.mask.shape[1] + 1):
            states = self.read(texts, range(len(texts)), [len(text) - 1 for text in texts])
            return states, Prefix(texts, lengths, None)
        cache = prefix.cache
        if list(rows) != list(range(len(prefix.prompts))):
            for layer in cache.layers:
                layer.keys, layer.values = (x.index_select(0, index) for x in (layer.keys, layer.values))
        mask = torch.nn.functional.pad(prefix.mask[index], (0, 1), value=True)
        states = self.transformer(
            input_ids=transfer.send(tokens, device)[:, None],
            attention_mask=mask.long(),
            position_ids=lengths[:, None] - 1,
            past_key_values=cache,
            use_cache=True,
        ).last_hidden_state
        self.tokens_read += len(texts)
        return states[:, 0], Prefix(texts, lengths, cache, mask)

    def room(self, prefix: Prefix) -> int:
        """Returns the rows of ``Engine.room``, padding counted; texts that are read anew keep nothing."""
        if prefix.cache is None:
            return sys.maxsize
        return max(1, self.budgets.tokens_per_forward // (prefix.mask.shape[1] + 1))

    def _pad_rows(self, sequences: Sequence[Tokens]) -> Tensor:
        width = max(map(len, sequences))
        # A table of positions has no row beyond its last one.
        if self.positions is not None and width > self.positions:
            raise ContextLengthError(
                f"a text of {width} tokens was given, prompt and answer together; allowed: at most "
                f"{self.positions}, the model's positions"
            )
        rows = [[*sequence, *(0,) * (width - len(sequence))] for sequence in sequences]
        self.tokens_read += sum(map(len, sequences))
        return transfer.send(rows, self.device)


class Prefix:
    """Texts of different lengths and, if they can be continued, their padded keys and values.

    Args:
        prompts: The texts, n of them.
        lengths: Their lengths, int64 (n,).
        cache: Keys and values, which are none if the texts must be read anew.
        mask: Slots of the cache that are no padding, bool (n, width); the texts' beginnings if None.
    """

    def __init__(
        self, prompts: Sequence[Tokens], lengths: Tensor, cache: Any, mask: Tensor | None = None
    ) -> None:
        self.prompts, self.lengths, self.cache = prompts, lengths, cache
        self.width = max(map(len, prompts))
        slots = torch.arange(self.width, device=lengths.device)
        self.mask = slots < lengths[:, None] if mask is None else mask

    def select(self, rows: Tensor) -> DynamicCache:
        """Returns a copy of the cache for ``rows`` (repeats allowed); extending it leaves this one alone."""
        cache = _make_cache()
        for index, layer in enumerate(self.cache.layers):
            cache.update(layer.keys.index_select(0, rows), layer.values.index_select(0, rows), index)
        return cache


def _make_cache() -> DynamicCache:
    """Returns an empty cache of keys and values."""
    from transformers import DynamicCache  # imported late: transformers takes seconds

    return DynamicCache()
