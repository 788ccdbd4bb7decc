"""Draws from distributions by given noise, the same draw for the same noise, and what was written by them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import pad

from gamespiel.agents import transfer
from gamespiel.agents.sampling.decisions import Decision, Request
from gamespiel.agents.tokens import Tokens
from task_gym.errors import TaskGymError

BLOCK = 1024
"""Probabilities that are summed first, to find a place in a whole vocabulary in two steps."""


class NotFiniteError(TaskGymError, FloatingPointError):
    """Logits that are not finite numbers."""


class WrittenAnswers(NamedTuple):
    """What was written after each of n prompts.

    Attributes:
        tokens: The answers' tokens.
        log_probs: Log-probabilities of each answer's decided tokens, float32 (decided,).
        legal_mass: See ``Decision``.
        hidden: Hidden states of the last prompt tokens, for the critic, (n, hidden_size).
    """

    tokens: list[Tokens]
    log_probs: list[npt.NDArray[np.float32]]
    legal_mass: Sequence[float | None]
    hidden: Tensor


def make_decisions(
    requests: Sequence[Request], written: WrittenAnswers, values: Sequence[float] | None = None
) -> list[Decision]:
    """Returns the decisions of n requests, to which answers were written.

    Args:
        requests: The requests.
        written: Their answers.
        values: The critic's estimates; None without a critic.
    """
    own = [None] * len(requests) if values is None else values
    rows = zip(requests, written.tokens, written.log_probs, written.legal_mass, own, strict=True)
    return [
        Decision(
            prompt=request.prompt,
            constraint=request.constraint,
            tokens=tokens,
            log_probs=log_probs,
            legal_mass=mass,
            cut=request.constraint.is_cut(tokens),
            adapters=request.adapters,
            value=value,
            left_out=request.left_out,
        )
        for request, tokens, log_probs, mass, value in rows
    ]


def inverse_cdf(
    log_probs: Tensor, where: Sequence[int] | npt.NDArray[np.int64], uniforms: npt.NDArray[np.float64]
) -> npt.NDArray[np.int64]:
    """Returns the place at which the cumulative probability first exceeds the uniform, int64 (rows,).

    Args:
        log_probs: float32 (k, c), of the children of a node or of the whole vocabulary.
        where: The row of ``log_probs`` of each uniform.
        uniforms: float64 (rows,), in [0, 1).

    Raises:
        NotFiniteError: a probability is not a finite number.
    """
    device = log_probs.device
    drawn, totals = draw_places(log_probs, transfer.send(where, device), transfer.send(uniforms, device))
    found, sums = transfer.read(drawn, totals)
    if not bool(sums.isfinite().all()):
        raise NotFiniteError("the model's logits are not finite: its weights or activations have overflowed")
    return found.numpy()


def draw_places(log_probs: Tensor, where: Tensor, uniforms: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the places of ``inverse_cdf``, int64 (rows,), and the sum of each row's probabilities, (k,).

    All is on the device, and nothing waits for it. Probabilities are summed in float64, first in blocks: a
    block's sum needs no order, and only the blocks that are drawn are summed one by one. A place of
    probability 0 is never returned. If a sum is not finite, its places mean nothing.
    """
    p = log_probs.double().exp()
    size = min(BLOCK, p.shape[1])
    blocks = pad(p, (0, -p.shape[1] % size)).view(len(p), -1, size)
    sums = blocks.sum(-1)
    ends = sums.cumsum(-1)
    totals, own = ends[:, -1], ends.index_select(0, where)
    targets = (uniforms * totals.index_select(0, where))[:, None]
    block = _first_above(own, sums.index_select(0, where), targets)
    before = own.gather(1, (block - 1).clamp(min=0)[:, None]).masked_fill((block == 0)[:, None], 0.0)
    inside = blocks[where, block]
    return block * size + _first_above(before + inside.cumsum(-1), inside, targets), totals


def _first_above(cumulative: Tensor, p: Tensor, targets: Tensor) -> Tensor:
    """Returns the first place where the cumulative sum exceeds the target, int64 (rows,)."""
    # Rounding can leave no sum above the target: then the last place with any mass is taken.
    last = p.shape[1] - 1 - (p > 0).flip(-1).int().argmax(-1)
    return torch.minimum((cumulative <= targets).sum(-1), last)
