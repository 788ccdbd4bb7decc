"""Samples: what an agent decided. Baselines decide without a learning library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from gamespiel.agents.tokens import Tokens

Numbers = Any
"""A ``torch.Tensor``; a baseline, which needs no learning library, returns a NumPy array."""


class PolicySample(NamedTuple):
    """A policy's decisions, one row per state; n rows.

    Attributes:
        actions: int64 (n,).
        values: The critic's estimates, float32 (n,).
        log_probs: Log-probabilities of the actions, float32 (n,).
        legal_mass: The unmasked model's mass on legal answers, float32 (n,).
    """

    actions: npt.NDArray[np.int64]
    values: Numbers
    log_probs: Numbers
    legal_mass: Numbers


class Reply(NamedTuple):
    """A reply that was written.

    Attributes:
        text: Its text, without the token that ended it. Other control tokens are in it as they are spelt, and
            bytes that are no UTF-8 as U+FFFD. Ids that the tokenizer does not know have no text.
        tokens: The tokens that were sampled, with the token that ended it, if there is one.
        cut: Whether ``max_new_tokens`` came before the end.
    """

    text: str
    tokens: Tokens
    cut: bool


class ReplySample(NamedTuple):
    """Replies as text, one row per state; n rows.

    Attributes:
        replies: The replies, n of them.
        values: The critic's estimates, float32 (n,).
        log_probs: Per reply, log-probabilities of its tokens, float32 (tokens,).
    """

    replies: Sequence[Reply]
    values: Numbers
    log_probs: Sequence[npt.NDArray[np.float32]]
