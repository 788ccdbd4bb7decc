"""The terms of the loss, calculated by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from gamespiel.agents.learning.coefficients import Coefficients
from gamespiel.agents.learning.terms import (
    Part,
    Played,
    Scored,
    critic_error,
    entropy_bonus,
    illegal_mass_penalty,
    magnet_divergence,
    policy_gradient,
    reference_divergence,
    select_terms,
)
from gamespiel.agents.models.names import BASE, MAGNET

NONE = torch.zeros(0)


def clipped_gradient(new: Tensor, old: Tensor, advantages: Tensor) -> Part:
    scored, played = Scored(new, NONE, NONE), Played(old, old, advantages, NONE)
    return policy_gradient(scored, played, Coefficients(cliprange=0.2))


@pytest.mark.parametrize(
    ("ratio", "advantage", "loss", "gradient"),
    [
        # Within 0.8 … 1.2 the loss is −r A, and d(−r A)/d log π = −r A.
        (1.0, 2.0, -2.0, -2.0),
        (1.1, -2.0, 2.2, 2.2),
        # Beyond, in the direction of the advantage: clipped, without a gradient.
        (1.5, 2.0, -1.2 * 2, 0.0),
        (0.5, -2.0, 0.8 * 2, 0.0),
        # Beyond, in the other direction: the unclipped value is the minimum and pulls back.
        (1.5, -2.0, 1.5 * 2, 3.0),
        (0.5, 2.0, -0.5 * 2, -1.0),
    ],
)
def test_the_clip(ratio: float, advantage: float, loss: float, gradient: float) -> None:
    old = torch.tensor([-1.0])
    new = (old + math.log(ratio)).requires_grad_()
    part = clipped_gradient(new, old, torch.tensor([advantage]))
    part.loss.backward()
    assert part.over == "units" and part.loss.item() == pytest.approx(loss, abs=1e-6)
    assert new.grad is not None and float(new.grad) == pytest.approx(gradient, abs=1e-6)
    assert float(part.metrics["clip_fraction"]) == float(abs(ratio - 1) > 0.2)
    assert not part.metrics["clip_fraction"].requires_grad and not part.metrics["approx_kl"].requires_grad


def test_the_mean_over_units() -> None:
    """Ratios 1, 2 and ½ with A = 1, 1, −1 and ε = 0.2: −(1 + 1.2 − 0.8)/3 = −1.4/3; two of three outside.

    (r − 1) − ln r: 0, 1 − ln 2, −½ + ln 2; their mean is ½/3.
    """
    old = torch.tensor([-1.0, -2.0, -0.5])
    new = old + torch.tensor([1.0, 2.0, 0.5]).log()
    part = clipped_gradient(new, old, torch.tensor([1.0, 1.0, -1.0]))
    found = {name: float(value) for name, value in part.metrics.items()}
    assert found == pytest.approx({"policy_loss": -1.4 / 3, "clip_fraction": 2 / 3, "approx_kl": 0.5 / 3})


def test_the_weight_between_sampler_and_scorer() -> None:
    """The scorer finds ½, 1 and 4 times the sampler's probability; a cap of 2 leaves ½, 1 and 2.

    At ratio 1 with A = 1 the loss is −(½ + 1 + 2)/3, and the gradient of each unit is −weight/3.
    """
    old = torch.tensor([-1.0, -2.0, -3.0])
    sampler = old - torch.tensor([0.5, 1.0, 4.0]).log()
    new = old.clone().requires_grad_()
    played = Played(old, sampler, torch.ones(3), NONE)
    part = policy_gradient(Scored(new, NONE, NONE), played, Coefficients(sampler_weight_cap=2.0))
    part.loss.backward()
    assert float(part.loss.detach()) == pytest.approx(-3.5 / 3, abs=1e-6)
    assert new.grad is not None and new.grad.tolist() == pytest.approx([-0.5 / 3, -1 / 3, -2 / 3], abs=1e-6)
    assert float(part.metrics["sampler_weight"]) == pytest.approx(3.5 / 3)
    assert float(part.metrics["sampler_capped"]) == pytest.approx(1 / 3)


def test_equal_columns_have_weight_one() -> None:
    """Bit for bit the loss without a weight."""
    old, advantages = torch.randn(5), torch.randn(5)
    new = old + 0.1 * torch.randn(5)
    played = Played(old, old, advantages, NONE)
    losses = [
        policy_gradient(Scored(new, NONE, NONE), played, Coefficients(sampler_weight_cap=cap)).loss
        for cap in (None, 2.0)
    ]
    assert torch.equal(*losses)


def test_the_critics_error() -> None:
    """(1² + 3²)/2, weighted with 0.1."""
    scored = Scored(NONE, NONE, torch.tensor([1.0, -1.0]))
    played = Played(NONE, NONE, NONE, torch.tensor([0.0, 2.0]))
    part = critic_error(scored, played, Coefficients(vf_coef=0.1))
    assert part.over == "turns" and float(part.loss) == pytest.approx(0.5)
    assert float(part.metrics["value_loss"]) == 5.0


def test_mass_above_the_target_costs_nothing() -> None:
    """Masses 1, 0.9 and 0.45 of a target of 0.9 cost 0, 0 and log 2; only the last has a gradient."""
    log_mass = torch.tensor([1.0, 0.9, 0.45]).log().requires_grad_()
    scored = Scored(NONE, NONE, NONE, log_mass=log_mass)
    part = illegal_mass_penalty(scored, Played(*[NONE] * 4), Coefficients(legal_coef=0.5, legal_target=0.9))
    assert part.over == "turns" and float(part.loss.detach()) == pytest.approx(math.log(2) / 6, abs=1e-6)
    assert float(part.metrics["legal_loss"].detach()) == pytest.approx(math.log(2) / 3, abs=1e-6)
    assert float(part.metrics["legal_mass"]) == pytest.approx(2.35 / 3)
    part.loss.backward()
    assert log_mass.grad is not None
    assert log_mass.grad[[0, 2]].tolist() == pytest.approx([0.0, -1 / 6])


def test_means_with_their_weights() -> None:
    """Entropies 1 and 3 with weight 0.2, as a bonus; divergences 0 and 1 with 0.3, 2 and 4 with 0.5."""
    divergences = {BASE: torch.tensor([0.0, 1.0]), MAGNET: torch.tensor([2.0, 4.0])}
    scored = Scored(NONE, torch.tensor([1.0, 3.0]), NONE, divergences)
    numbers = Coefficients(ent_coef=0.2, kl_coef=0.3, magnet_coef=0.5)
    for term, loss, metrics in (
        (entropy_bonus, -0.4, {"entropy": 2.0}),
        (reference_divergence, 0.15, {"kl_ref": 0.5}),
        (magnet_divergence, 1.5, {"kl_magnet": 3.0}),
    ):
        part = term(scored, Played(*[NONE] * 4), numbers)
        assert part.over == "units" and float(part.loss) == pytest.approx(loss)
        assert {name: float(value) for name, value in part.metrics.items()} == pytest.approx(metrics)


def test_which_terms_there_are() -> None:
    always = [policy_gradient, critic_error, entropy_bonus, reference_divergence]
    assert select_terms(mass=False, magnet=False) == always
    assert select_terms(mass=False, magnet=False, reference=False) == always[:3]
    assert select_terms(mass=True, magnet=True) == [*always, illegal_mass_penalty, magnet_divergence]
