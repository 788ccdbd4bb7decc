"""Intervals, against values calculated by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gamespiel.agents.runs.stats import Z95, mean_interval, wilson

Z2 = Z95**2


@pytest.mark.parametrize(
    ("successes", "expected"),
    [
        # The bounds p solve (phat - p)^2 = z^2 p (1 - p) / n. With n = 10:
        # phat = 0: p^2 = z^2 p (1 - p) / 10, so p = 0 or p = z^2 / (10 + z^2) = 3.84146 / 13.84146 = 0.27753.
        (0, (0.0, 0.0, Z2 / (10 + Z2))),
        # phat = 1, its mirror image: 1 or 10 / (10 + z^2) = 0.72247.
        (10, (1.0, 10 / (10 + Z2), 1.0)),
        # phat = 1/2, symmetric: d^2 = z^2 (1/4 - d^2) / 10, so d = z / (2 sqrt(10 + z^2)) = 0.26341.
        (5, (0.5, 0.5 - Z95 / (2 * math.sqrt(10 + Z2)), 0.5 + Z95 / (2 * math.sqrt(10 + Z2)))),
    ],
)
def test_wilson_by_hand(successes: int, expected: tuple[float, float, float]) -> None:
    assert wilson(successes, 10) == pytest.approx(expected, abs=1e-12)


@given(st.data())
def test_wilson_contains_the_proportion_and_stays_in_the_unit_interval(data: st.DataObject) -> None:
    trials = data.draw(st.integers(1, 10**6))
    successes = data.draw(st.integers(0, trials))
    mean, low, high = wilson(successes, trials)
    assert mean == successes / trials
    assert 0 <= low <= mean <= high <= 1 and low < high
    mirrored = wilson(trials - successes, trials)
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - high, 1 - low), abs=1e-12)


@pytest.mark.parametrize(("successes", "trials"), [(0, 0), (-1, 10), (11, 10)])
def test_what_is_no_proportion_is_refused(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match=f"got {successes}, {trials}"):
        wilson(successes, trials)


def test_mean_interval_by_hand() -> None:
    # 1, 2, 3, 4: mean 5/2, variance (9/4 + 1/4 + 1/4 + 9/4) / 3 = 5/3, standard error sqrt(5/3 / 4).
    error = Z95 * math.sqrt(5 / 12)
    assert mean_interval([1, 2, 3, 4]) == pytest.approx((2.5, 2.5 - error, 2.5 + error), abs=1e-12)
    assert mean_interval([0.5, 0.5]) == (0.5, 0.5, 0.5)
    assert mean_interval([3.0]) == (3.0, -math.inf, math.inf)
    with pytest.raises(ValueError, match="at least one value"):
        mean_interval([])


def test_wilson_of_partial_successes() -> None:
    """Ten halves out of ten: p = 1/2, and z²/n = 0.384146, so 1/2 ± 1.96 √(1/40 + 0.384146/40) / 1.384146."""
    mean, low, high = wilson(sum([0.5] * 10), 10)
    half = 1.959964 * math.sqrt(1.384146 / 40) / 1.384146
    assert (mean, low, high) == pytest.approx((0.5, 0.5 - half, 0.5 + half), abs=1e-5)
