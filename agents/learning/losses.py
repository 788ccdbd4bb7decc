"""PPO's losses, as pure functions of float32 tensors of shape (turns,) or (decisions,)."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor


class PolicyLoss(NamedTuple):
    """The clipped loss of the policy, and what it says about the update; scalars.

    Attributes:
        loss: The loss, differentiable.
        clip_fraction: Share of decisions outside the trust region.
        approx_kl: Estimate of KL(old || new), in nats per decision.
    """

    loss: Tensor
    clip_fraction: Tensor
    approx_kl: Tensor


def clipped_policy_loss(
    log_prob: Tensor, old_log_prob: Tensor, advantages: Tensor, cliprange: float
) -> PolicyLoss:
    """Returns the mean of −min(r A, clip(r, 1 − ε, 1 + ε) A) (Schulman et al. 2017, arXiv:1707.06347, eq. 7).

    All are of shape (decisions,): the advantage of a decision is its turn's.

    The divergence is the low-variance estimator (r − 1) − log r (Schulman, "Approximating KL divergence").
    """
    log_ratio = log_prob - old_log_prob
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1.0 - cliprange, 1.0 + cliprange)
    loss = -torch.min(ratio * advantages, clipped * advantages).mean()
    with torch.no_grad():
        clip_fraction = ((ratio - 1.0).abs() > cliprange).float().mean()
        approx_kl = (ratio - 1.0 - log_ratio).mean()
    return PolicyLoss(loss, clip_fraction, approx_kl)


def value_loss(values: Tensor, returns: Tensor) -> Tensor:
    """Returns the critic's mean squared error, a scalar."""
    return (values - returns).square().mean()


def illegality_loss(log_mass: Tensor, target: float) -> Tensor:
    """Returns the mean of −log(mass), as far as the mass on legal answers is below ``target``, a scalar.

    A mask hides what a model would say without it, and no other loss asks for it: under a mask alone the mass
    on legal answers decays.
    """
    return (math.log(target) - log_mass).clamp(min=0.0).mean()
