"""PPO's losses, calculated by hand."""

from __future__ import annotations

import math

import pytest
import torch

from gamespiel.agents.learning.losses import clipped_policy_loss, illegality_loss, value_loss


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
    found = clipped_policy_loss(new, old, torch.tensor([advantage]), 0.2)
    found.loss.backward()
    assert found.loss.item() == pytest.approx(loss, abs=1e-6)
    assert new.grad is not None and float(new.grad) == pytest.approx(gradient, abs=1e-6)
    assert float(found.clip_fraction) == float(abs(ratio - 1) > 0.2)


def test_the_mean_over_turns() -> None:
    """Ratios 1, 2 and ½ with A = 1, 1, −1 and ε = 0.2: −(1 + 1.2 − 0.8)/3 = −1.4/3; two of three outside.

    (r − 1) − ln r: 0, 1 − ln 2, −½ + ln 2; their mean is ½/3.
    """
    old = torch.tensor([-1.0, -2.0, -0.5])
    new = old + torch.tensor([1.0, 2.0, 0.5]).log()
    found = clipped_policy_loss(new, old, torch.tensor([1.0, 1.0, -1.0]), 0.2)
    assert float(found.loss) == pytest.approx(-1.4 / 3, abs=1e-6)
    assert float(found.clip_fraction) == pytest.approx(2 / 3)
    assert float(found.approx_kl) == pytest.approx(0.5 / 3, abs=1e-6)


def test_what_is_reported_holds_no_graph() -> None:
    new = torch.zeros(2, requires_grad=True)
    found = clipped_policy_loss(new, torch.zeros(2), torch.ones(2), 0.2)
    assert found.loss.requires_grad
    assert not found.clip_fraction.requires_grad and not found.approx_kl.requires_grad


def test_the_critics_error() -> None:
    """(1² + 3²)/2."""
    assert float(value_loss(torch.tensor([1.0, -1.0]), torch.tensor([0.0, 2.0]))) == 5.0


def test_mass_above_the_target_costs_nothing() -> None:
    """Masses 1, 0.9 and 0.45 of a target of 0.9 cost 0, 0 and log 2; only the last has a gradient."""
    log_mass = torch.tensor([1.0, 0.9, 0.45]).log().requires_grad_()
    loss = illegality_loss(log_mass, 0.9)
    assert float(loss.detach()) == pytest.approx(math.log(2) / 3, abs=1e-6)
    loss.backward()
    assert log_mass.grad is not None
    assert log_mass.grad[[0, 2]].tolist() == pytest.approx([0.0, -1 / 3])
