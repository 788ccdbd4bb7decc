"""The terms of the loss, as pure functions of what was scored and what was given.

Each returns its part of the loss, weighted, with its metrics, and says what it is a mean over: the ratio
units of an optimizer step, or its turns. The loss is their sum. A choice is one unit, whose log-probability
is the sum over its path. Each token of a text is one. An answer that was forced is one unit of 0.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from gamespiel.agents.learning.coefficients import Coefficients
from gamespiel.agents.models import BASE, MAGNET
from task_gym.errors import ArgumentError, nearest, quote


@dataclass(frozen=True)
class Scored:
    """The learning policy's numbers for b turns with u ratio units; differentiable.

    Attributes:
        log_probs: float32 (u,).
        entropy: In nats, float32 (u,). Of a choice it is exact if its trie has at most one branching node,
            else the sum of the exact entropies of its path's nodes: unbiased if these weights drew the path.
        values: The critic's, float32 (b,).
        divergences: By name of another policy, KL(this || other), float32 (u,).
        log_mass: Log of the unmasked mass on legal answers, float32 (b,); None if it was not asked for.
    """

    log_probs: Tensor
    entropy: Tensor
    values: Tensor
    divergences: Mapping[str, Tensor] = field(default_factory=dict)
    log_mass: Tensor | None = None


@dataclass(frozen=True)
class Played:
    """The rollout's facts about the same turns.

    Attributes:
        old_log_probs: The denominator of the ratio, float32 (u,).
        sampler_log_probs: What the sampler gave, float32 (u,).
        advantages: Of each unit's turn, float32 (u,).
        returns: float32 (b,).
        unit_weights: Of each unit in the means, float32 (u,).
        turn_weights: Of each turn, likewise, float32 (b,).
    """

    old_log_probs: Tensor
    sampler_log_probs: Tensor
    advantages: Tensor
    returns: Tensor
    unit_weights: Tensor
    turn_weights: Tensor

    def mean_over_units(self, values: Tensor) -> Tensor:
        """Returns the weighted mean of values (u,)."""
        return (self.unit_weights * values).sum() / self.unit_weights.sum()

    def mean_over_turns(self, values: Tensor) -> Tensor:
        """Returns the weighted mean of values (b,)."""
        return (self.turn_weights * values).sum() / self.turn_weights.sum()


Over = Literal["units", "turns"]
"""The rows that a mean is over."""


class Part(NamedTuple):
    """A term's part of the loss.

    Attributes:
        loss: A scalar, a weighted mean; differentiable.
        over: What the mean is over.
        metrics: Scalars, means over the same.
    """

    loss: Tensor
    over: Over
    metrics: Mapping[str, Tensor]


Term = Callable[[Scored, Played, Coefficients], Part]


def policy_gradient(scored: Scored, played: Played, numbers: Coefficients) -> Part:
    """Returns the mean of −min(r A, clip(r, 1 − ε, 1 + ε) A) (Schulman et al. 2017, arXiv:1707.06347, eq. 7).

    ``approx_kl`` is the low-variance estimator (r − 1) − log r of KL(old || new), in nats per unit (Schulman,
    "Approximating KL divergence"). ``clip_fraction`` is the share of units outside the trust region.
    """
    log_ratio = scored.log_probs - played.old_log_probs
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1.0 - numbers.cliprange, 1.0 + numbers.cliprange)
    surrogate = torch.min(ratio * played.advantages, clipped * played.advantages)
    metrics: dict[str, Tensor] = {}
    if numbers.sampler_weight_cap is not None:
        weight, metrics = sampler_weight(played, numbers.sampler_weight_cap)
        surrogate = weight * surrogate
    loss = -played.mean_over_units(surrogate)
    with torch.no_grad():
        metrics |= {
            "policy_loss": loss,
            "approx_kl": played.mean_over_units(ratio - 1.0 - log_ratio),
            "clip_fraction": played.mean_over_units(((ratio - 1.0).abs() > numbers.cliprange).float()),
        }
    return Part(loss, "units", metrics)


def sampler_weight(played: Played, cap: float) -> tuple[Tensor, dict[str, Tensor]]:
    """Returns the weight between sampler and scorer, float32 (u,), with its metrics.

    It is the truncated importance weight min(scorer's probability / sampler's, cap): 1 where they are equal
    (Yao et al. 2025, "Your Efficient RL Framework Secretly Brings You Off-Policy RL Training").
    """
    ratio = (played.old_log_probs - played.sampler_log_probs).exp()
    weight = ratio.clamp(max=cap)
    return weight, {"sampler_weight": weight.mean(), "sampler_capped": (ratio > cap).float().mean()}


def entropy_bonus(scored: Scored, played: Played, numbers: Coefficients) -> Part:
    """Returns minus the weighted mean entropy."""
    entropy = played.mean_over_units(scored.entropy)
    return Part(-numbers.ent_coef * entropy, "units", {"entropy": entropy})


def reference_divergence(scored: Scored, played: Played, numbers: Coefficients) -> Part:
    """Returns the weighted mean of KL(policy || reference)."""
    divergence = played.mean_over_units(scored.divergences[BASE])
    return Part(numbers.kl_coef * divergence, "units", {"kl_ref": divergence})


def magnet_divergence(scored: Scored, played: Played, numbers: Coefficients) -> Part:
    """Returns the weighted mean of KL(policy || magnet)."""
    divergence = played.mean_over_units(scored.divergences[MAGNET])
    return Part(numbers.magnet_coef * divergence, "units", {"kl_magnet": divergence})


def illegal_mass_penalty(scored: Scored, played: Played, numbers: Coefficients) -> Part:
    """Returns the weighted mean of −log(mass), as far as the mass on legal answers is below its target.

    A mask hides what a model would say without it, and no other term asks for it: under a mask alone the mass
    on legal answers decays. ``legal_mass`` has every token and the end of turn.
    """
    assert scored.log_mass is not None  # the update asks for it if the term is in the loss
    loss = played.mean_over_turns((math.log(numbers.legal_target) - scored.log_mass).clamp(min=0.0))
    mass = played.mean_over_turns(scored.log_mass.detach().exp())
    return Part(numbers.legal_coef * loss, "turns", {"legal_loss": loss, "legal_mass": mass})


def critic_error(scored: Scored, played: Played, numbers: Coefficients) -> Part:
    """Returns the critic's weighted mean squared error."""
    loss = played.mean_over_turns((scored.values - played.returns).square())
    return Part(numbers.vf_coef * loss, "turns", {"value_loss": loss})


def load_term(path: str) -> Term:
    """Returns the term that a user's module has, by its path, as "my_module:my_term".

    Raises:
        ArgumentError: there is no such module or function.
    """
    module, _, name = path.partition(":")
    if not module or not name.isidentifier():
        raise ArgumentError(
            f"ppo.terms: {quote(path)} was given, needed: a module and its function, as my_module:my_term"
        )
    try:
        members = vars(importlib.import_module(module))
    except ModuleNotFoundError as error:
        raise ArgumentError(f"ppo.terms: {path!r} was given, and {error.name!r} cannot be found") from error
    if name not in members:
        near = nearest(name, members)
        raise ArgumentError(f"ppo.terms: {path!r} was given, and {module!r} has no {name!r}{near}")
    term: Term = members[name]
    if not callable(term):
        raise ArgumentError(f"ppo.terms: {path!r} was given, which is {quote(term)}, needed: a function")
    return term


def select_terms(
    *, mass: bool, magnet: bool, reference: bool = True, more: Sequence[Term] = ()
) -> Sequence[Term]:
    """Returns the terms of a loss, in the order in which they are summed.

    Args:
        mass: Whether the mass on legal answers is trained.
        magnet: Whether there is a magnet.
        reference: Whether the divergence from the reference is measured.
        more: The user's own terms.
    """
    terms: list[Term] = [policy_gradient, critic_error, entropy_bonus]
    others = ((reference, reference_divergence), (mass, illegal_mass_penalty), (magnet, magnet_divergence))
    return [*terms, *(term for wanted, term in others if wanted), *more]
