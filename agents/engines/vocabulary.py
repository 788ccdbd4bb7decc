"""Distributions over the whole vocabulary, in parts: the logits of all tokens at once would fill memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from gamespiel.agents.engines.base import Engine

LOGITS_AT_ONCE = 2**24
"""Logits made together, 64 MB in float32. Sampling or a backward pass takes several times as much."""


def vocabulary_log_probs(logits: Tensor, temperature: float) -> Tensor:
    """Returns log-probabilities at a temperature from logits (k, vocab)."""
    return (logits / temperature).log_softmax(-1)


def rows_at_once(engine: Engine) -> int:
    """Returns the number of states whose logits are made together."""
    return max(1, LOGITS_AT_ONCE // engine.vocab_size)


def split_states(engine: Engine, states: int) -> Iterator[slice]:
    """Yields the parts of so many states whose logits are made together."""
    rows = rows_at_once(engine)
    return (slice(start, min(start + rows, states)) for start in range(0, states, rows))


def apply_in_part(engine: Engine, states: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """Returns the function's value; of several parts, none keeps its logits for the backward pass."""
    if states <= rows_at_once(engine) or not torch.is_grad_enabled():
        return function(*arguments)
    return checkpoint(function, *arguments, use_reentrant=False, preserve_rng_state=False)
