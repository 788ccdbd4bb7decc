"""Scoring: what the policy, and others that it is compared with, make of decisions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class Scores(ABC):
    """The scores of n decisions with k decided tokens in all; differentiable.

    Attributes:
        log_probs: One per decided token, float32 (k,).
        entropy: Of the distribution that each of them was drawn from, in nats, float32 (k,).
        owners: The decision of each decided token, ascending, int64 (k,).
        hidden: Hidden states of the last prompt tokens, for the critic, (n, hidden_size).
        log_mass: Log of the unmasked mass on legal answers along each path, forced tokens and the end of turn
            included, float32 (n,); None unless asked for, or if nothing says what is legal.
        values: The critic's estimates, float32 (n,); (0,) before the critic.
        divergences: By name of the other policy, KL(this || other) at each decided token, float32 (k,).
    """

    log_probs: Tensor
    entropy: Tensor
    owners: Tensor
    hidden: Tensor
    log_mass: Tensor | None = field(default=None, kw_only=True)
    values: Tensor = field(default_factory=lambda: torch.zeros(0), kw_only=True)
    divergences: Mapping[str, Tensor] = field(default_factory=dict, kw_only=True)

    @property
    def measures(self) -> Mapping[str, float]:
        """Returns means over decisions, for metrics."""
        return {}

    @abstractmethod
    def keep(self, estimator: str) -> Tensor:
        """Returns what another policy's ``divergence`` from this one needs, one row per decided token."""

    @abstractmethod
    def divergence(self, other: Tensor, estimator: str) -> Tensor:
        """Returns KL(this || other) at each decided token in nats, float32 (k,).

        Args:
            other: What the other policy's scores of the same decisions keep.
            estimator: "exact" or "k3", as when it was kept.
        """

    def sum(self, per_token: Tensor) -> Tensor:
        """Returns the sums of numbers of decided tokens (k,) over each decision's, (n,)."""
        zeros = torch.zeros(len(self.hidden), dtype=per_token.dtype, device=per_token.device)
        return zeros.index_add(0, self.owners, per_token)
