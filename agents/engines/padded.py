"""The transformers engine: forward passes of a causal language model, read at chosen positions only.

Sequences are padded on the right. Attention is causal and pads come last, so no real token sees a pad and no
attention mask is needed. Only in an extended cache are pads between prompt and continuation; there they are
masked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import DynamicCache

TOKENS_PER_FORWARD = 16_384


class TransformersEngine:
    """Hidden states and logits of a (PEFT-wrapped) causal language model.

    Args:
        model: A transformers causal language model, or the PEFT model around one.
        tokens_per_forward: Budget of padded tokens per forward. It only splits the work: the grouping of
            sequences depends on their lengths and positions alone.
    """

    def __init__(self, model: Any, tokens_per_forward: int = TOKENS_PER_FORWARD) -> None:
        if tokens_per_forward < 1:
            raise ValueError(f"tokens_per_forward must be at least 1, got {tokens_per_forward}")
        self.model = model
        self.tokens_per_forward = tokens_per_forward
        base = model.get_base_model() if hasattr(model, "get_base_model") else model
        self.decoder: nn.Module = base.get_decoder()
        self.head: nn.Linear = base.get_output_embeddings()

    @property
    def device(self) -> torch.device:
        return next(self.decoder.parameters()).device

    def adapters_off(self) -> AbstractContextManager[None]:
        """Returns a context in which the model is the reference policy, without its adapters."""
        context: AbstractContextManager[None] = self.model.disable_adapter()
        return context

    def logits(self, hidden: Tensor) -> Tensor:
        """Returns next-token logits, float32 (k, vocab), from hidden states (k, hidden)."""
        logits: Tensor = self.head(hidden.to(self.head.weight.dtype))
        return logits.float()

    def read(
        self, sequences: Sequence[tuple[int, ...]], rows: Sequence[int], positions: Sequence[int]
    ) -> Tensor:
        """Returns hidden states at (row, position) pairs, shape (k, hidden), differentiable."""
        wanted: dict[int, list[int]] = {}
        for k, row in enumerate(rows):
            wanted.setdefault(row, []).append(k)
        order: list[int] = []
        parts: list[Tensor] = []
        for chunk in self.chunks(sequences):
            ids = self._padded([sequences[row] for row in chunk])
            states = self.decoder(input_ids=ids, use_cache=False).last_hidden_state
            local = [(i, k) for i, row in enumerate(chunk) for k in wanted.get(row, ())]
            at_row = torch.tensor([i for i, _ in local], device=states.device)
            at_position = torch.tensor([positions[k] for _, k in local], device=states.device)
            parts.append(states[at_row, at_position])
            order.extend(k for _, k in local)
        inverse = torch.empty(len(order), dtype=torch.long)
        inverse[torch.tensor(order)] = torch.arange(len(order))
        return torch.cat(parts)[inverse.to(parts[0].device)]

    def chunks(self, sequences: Sequence[tuple[int, ...]]) -> Iterator[list[int]]:
        """Yields indices of sequences to share a forward: of similar length, padded within the budget."""
        chunk: list[int] = []
        for row in sorted(range(len(sequences)), key=lambda row: -len(sequences[row])):
            longest = len(sequences[chunk[0]]) if chunk else 0
            if chunk and longest * (len(chunk) + 1) > self.tokens_per_forward:
                yield chunk
                chunk = []
            chunk.append(row)
        if chunk:
            yield chunk

    @torch.no_grad()
    def prefill(self, prompts: Sequence[tuple[int, ...]], *, cache: bool) -> tuple[Tensor, Prefix | None]:
        """Returns hidden states of the prompts' last tokens (n, hidden), and a prefix for ``extend``."""
        lengths = torch.tensor([len(prompt) for prompt in prompts], device=self.device)
        out = self.decoder(input_ids=self._padded(prompts), use_cache=cache)
        last = out.last_hidden_state[torch.arange(len(prompts), device=self.device), lengths - 1]
        return last, Prefix(out.past_key_values, lengths) if cache else None

    @torch.no_grad()
    def extend(self, prefix: Prefix, rows: Sequence[int], tokens: Sequence[tuple[int, ...]]) -> Tensor:
        """Returns hidden states after continuing prompt ``rows[i]`` with ``tokens[i]``, shape (k, hidden).

        Neighbours share a forward within the token budget, their prompts counted.
        """
        parts, start, longest = [], 0, 0
        for end, sequence in enumerate(tokens):
            longest = max(longest, len(sequence))
            if end > start and (prefix.width + longest) * (end + 1 - start) > self.tokens_per_forward:
                parts.append(self._extend(prefix, rows[start:end], tokens[start:end]))
                start, longest = end, len(sequence)
        parts.append(self._extend(prefix, rows[start:], tokens[start:]))
        return torch.cat(parts)

    def _extend(self, prefix: Prefix, rows: Sequence[int], tokens: Sequence[tuple[int, ...]]) -> Tensor:
        device = self.device
        index = torch.tensor(rows, device=device)
        cache = prefix.select(index)
        prompt_lengths = prefix.lengths[index]
        counts = torch.tensor([len(t) for t in tokens], device=device)
        steps = torch.arange(int(counts.max()), device=device)
        slots = torch.arange(prefix.width, device=device)
        mask = torch.cat([slots < prompt_lengths[:, None], steps < counts[:, None]], dim=1)
        states = self.decoder(
            input_ids=self._padded(tokens),
            attention_mask=mask.long(),
            position_ids=prompt_lengths[:, None] + steps,
            past_key_values=cache,
            use_cache=True,
        ).last_hidden_state
        return states[torch.arange(len(rows), device=device), counts - 1]

    def _padded(self, sequences: Sequence[tuple[int, ...]]) -> Tensor:
        width = max(map(len, sequences))
        rows = [[*sequence, *(0,) * (width - len(sequence))] for sequence in sequences]
        return torch.tensor(rows, device=self.device)


class Prefix:
    """Keys and values of prompts of different lengths, padded on the right."""

    def __init__(self, cache: Any, lengths: Tensor) -> None:
        self._layers = [(layer.keys, layer.values) for layer in cache.layers]
        self.lengths = lengths

    @property
    def width(self) -> int:
        return int(self._layers[0][0].shape[-2])

    def select(self, rows: Tensor) -> DynamicCache:
        """Returns a copy of the cache for ``rows`` (repeats allowed); extending it leaves this one alone."""
        cache = DynamicCache()
        for layer, (keys, values) in enumerate(self._layers):
            cache.update(keys.index_select(0, rows), values.index_select(0, rows), layer)
        return cache
