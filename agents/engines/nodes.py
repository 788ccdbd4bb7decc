"""The branching nodes of tries, read by an engine: each place once, and its children's probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import softplus

from gamespiel.agents import transfer
from gamespiel.agents.engines.base import Engine, apply_in_parts, split_states
from gamespiel.agents.tokens import Index, Tokens

LOGITS_AT_ONCE = 2**26
"""Logits made together without gradients: 256 MB. A greedy choice reads every node of every state."""


class NodeRead(NamedTuple):
    """A branching node to read: index of a token sequence, position that predicts the child, children."""

    sequence: int
    position: int
    children: Tokens


def read_nodes(
    engine: Engine,
    sequences: Sequence[Tokens],
    reads: Sequence[NodeRead],
    anchors: Sequence[tuple[int, int]],
    where: npt.NDArray[np.int64] | None = None,
) -> tuple[Tensor, Tensor]:
    """Returns hidden states of the reads, and of the anchors, reading each place once.

    With ``where``, int64 (n,), turn i gets the hidden state of anchor ``where[i]``.
    """
    places = Index[tuple[int, int]]()
    read_indices = np.array([places((read.sequence, read.position)) for read in reads], dtype=np.int64)
    anchored = np.array([places(anchor) for anchor in anchors], dtype=np.int64)
    at = np.concatenate([read_indices, anchored if where is None else anchored[where]])
    states = engine.read(sequences, [row for row, _ in places.items], [pos for _, pos in places.items])
    # index_select, here and elsewhere: with many threads, the backward pass of plain indexing sums
    # repeated rows in no fixed order, and two runs would differ.
    states = states.index_select(0, transfer.send(at, states.device))
    return states[: len(reads)], states[len(reads) :]


def child_log_probs(
    engine: Engine, states: Tensor, children: Sequence[Tokens], *, mass: bool = True
) -> tuple[Tensor, Tensor]:
    """Returns renormalised log-probabilities of each state's children, and the log of their mass.

    Shapes: states (k, hidden) -> float32 (k, c), -inf beyond a state's own children; float32 (k,), or
    (0,) without ``mass``.
    """
    width = max(map(len, children), default=1)
    # A state with fewer children repeats its first, which changes nothing where it is masked.
    padded = np.array([[*c, *c[:1] * (width - len(c))] for c in children], dtype=np.int64)
    padded = padded.reshape(-1, width)
    counts = transfer.send([len(c) for c in children], states.device)
    selected = engine.logits_of(states, padded)
    selected = selected.masked_fill(torch.arange(width, device=states.device) >= counts[:, None], -torch.inf)
    if not mass:
        return selected.log_softmax(-1), states.new_zeros(0)
    tokens = transfer.send(padded, states.device)

    def sum_others(states: Tensor, tokens: Tensor) -> Tensor:
        """Returns logsumexp of the logits of all tokens but the given ones, float32 (k,)."""
        return engine.logits(states).scatter(1, tokens, -torch.inf).logsumexp(-1)

    # One part of nothing, if no prompt has anything to choose.
    parts = split_states(engine, len(states), None if torch.is_grad_enabled() else LOGITS_AT_ONCE)
    others = apply_in_parts(sum_others, [(states[part], tokens[part]) for part in parts])
    # log(a / (a + b)) = -softplus(log b - log a): exact where the mass is almost 1, too.
    return selected.log_softmax(-1), -softplus(torch.cat(others) - selected.logsumexp(-1))
