"""The coefficient of the divergence, calculated by hand."""

from __future__ import annotations

import math

import pytest

from gamespiel.agents.learning.kl_control import AdaptiveKLController


@pytest.mark.parametrize(
    ("kl", "turns", "horizon", "expected"),
    [
        (0.1, 500, 1000, 0.2),  # on target
        (0.11, 500, 1000, 0.2 * (1 + 0.1 * 0.5)),  # a tenth above the target, for half a horizon
        (0.095, 1000, 1000, 0.2 * (1 - 0.05)),  # a twentieth below, for one horizon
        (5.0, 1000, 1000, 0.2 * 1.2),  # far above counts as a fifth
        (0.0, 50_000, 1000, 0.2 * 0.8),  # so does far below, and 50 horizons count as one
        (5.0, 1000, None, 0.2),
    ],
)
def test_an_update(kl: float, turns: int, horizon: int | None, expected: float) -> None:
    control = AdaptiveKLController(coefficient=0.2, target=0.1, horizon=horizon)
    control.update(kl, turns)
    assert control.coefficient == pytest.approx(expected)


@pytest.mark.parametrize(
    ("coefficient", "horizon", "measured"),
    [(0.0, None, [1, 10, 20, 30]), (0.1, None, list(range(1, 31))), (0.0, 100, list(range(1, 31)))],
)
def test_a_fixed_weight_of_0_asks_for_some_divergences(
    coefficient: float, horizon: int | None, measured: list[int]
) -> None:
    control = AdaptiveKLController(coefficient, 0.1, horizon)
    assert [step + 1 for step in range(30) if control.needs_divergence(step)] == measured


@pytest.mark.parametrize(
    ("coefficient", "target", "horizon"), [(-0.1, 0.1, 10), (0.1, 0.0, 10), (0.1, 0.1, 0), (0.1, -1.0, None)]
)
def test_what_is_refused(coefficient: float, target: float, horizon: int | None) -> None:
    with pytest.raises(ValueError, match=f"got {coefficient}, {target}, {horizon}"):
        AdaptiveKLController(coefficient, target, horizon)


def test_a_divergence_that_is_no_number_is_an_error() -> None:
    """Such a divergence would make the coefficient, and every later loss, NaN."""
    control = AdaptiveKLController(0.2, 0.1)
    with pytest.raises(FloatingPointError, match="divergence from the reference is nan"):
        control.update(math.nan, 10)
    assert control.coefficient == 0.2
