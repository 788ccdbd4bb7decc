"""Estimates over deals, families and power, against values calculated by hand."""

from __future__ import annotations

import math

import pytest

from gamespiel.config import InvalidValueError
from gamespiel.statistics.families import adjust_by_holm, share_confidence
from gamespiel.statistics.means import Estimate, estimate_mean, pool_equally
from gamespiel.statistics.power import count_deals, find_difference

BOUNDS = (-1.0, 1.0)


def test_a_mean_has_students_interval() -> None:
    # Mean 0, sum of squares 1/2, so the variance is 1/6 and the error sqrt(1/24) = 0.204124. The quantile of
    # Student's distribution with 3 degrees of freedom is 3.182446.
    found = estimate_mean([0.5, -0.5, 0, 0], BOUNDS)
    assert (found.mean, found.freedom, found.deals) == (0, 3, 4)
    assert found.error == pytest.approx(math.sqrt(1 / 24))
    assert found.interval()[1] == pytest.approx(3.182446 * 0.204124, abs=1e-6)
    assert found.p_value() == 1


def test_the_p_value_is_that_of_the_interval_that_just_touches_zero() -> None:
    found = estimate_mean([0.3, 0.1, 0.4, -0.1, 0.2], BOUNDS)
    assert found.interval(1 - found.p_value())[0] == pytest.approx(0, abs=1e-9)


def test_equal_values_leave_doubt() -> None:
    # 20 ties: a mean m > 0 makes a value of at most 0 likely with (1 - m) at most, and 20 of them with 0.025:
    # m = 1 - 0.025^(1/20) = 0.16843.
    found = estimate_mean([0.0] * 20, BOUNDS)
    assert found.interval() == pytest.approx((-0.16843, 0.16843), abs=1e-5)
    assert found.p_value() == 1 and not found.exact
    # Five deals won outright: 2 * (1/2)^5.
    assert estimate_mean([1.0] * 5, BOUNDS).p_value() == pytest.approx(1 / 16)
    assert estimate_mean([1.0] * 5, BOUNDS).interval()[1] == 1
    # One deal says hardly anything: low = -1 + 1.5 * 0.025.
    assert estimate_mean([0.5], BOUNDS).interval()[0] == pytest.approx(-0.9625)


def test_games_count_equally_whatever_their_deals() -> None:
    # Errors of 0.1 each: sqrt(0.02) / 2 together; Welch's freedom is 0.02^2 / (2 * 0.01^2 / 9) = 18.
    pooled = pool_equally([Estimate(0.2, 0.1, 9, 10, 0.3), Estimate(0.0, 0.1, 9, 1000, 3.0)])
    assert (pooled.mean, pooled.freedom) == (pytest.approx(0.1), pytest.approx(18))
    assert pooled.error == pytest.approx(math.sqrt(0.02) / 2)


def test_exact_means_have_no_error() -> None:
    pooled = pool_equally([Estimate(0.25), Estimate(-0.25)])
    assert pooled.exact and pooled.interval() == (0, 0) and pooled.p_value() == 1
    half = pool_equally([Estimate(0.5), Estimate(0.0, 0.1, 9, 10, 0.3)])
    # The exact part halves the error and leaves the freedom.
    assert (half.mean, half.error, half.freedom) == (0.25, 0.05, pytest.approx(9))


def test_values_out_of_range_are_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"must be in -1 … 1"):
        estimate_mean([0.0, 1.5], BOUNDS)
    with pytest.raises(InvalidValueError, match="at least one deal"):
        estimate_mean([], BOUNDS)


def test_holm_by_hand() -> None:
    # In order: 4 * 0.005, 3 * 0.01, 2 * 0.03, and 0.04, which may not be below the 0.06 before it.
    assert adjust_by_holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert adjust_by_holm([0.5, 0.9]) == [1, 1] and adjust_by_holm([]) == []
    assert share_confidence(0.95, 10) == pytest.approx(0.995) and share_confidence(0.95, 0) == 0.95


def test_the_deals_for_a_difference_by_hand() -> None:
    # (1.959964 + 0.841621)^2 * (0.5 / 0.1)^2 = 7.848879 * 25 = 196.2, and 1.959964^2 / 2 = 1.9 more.
    assert count_deals(0.5, 0.1) == 199
    assert find_difference(0.5, 197) == pytest.approx(0.1, rel=2e-3)
    assert count_deals(0.0, 0.1) == 2
    with pytest.raises(InvalidValueError, match="above 0, not nan"):
        count_deals(0.5, math.nan)
