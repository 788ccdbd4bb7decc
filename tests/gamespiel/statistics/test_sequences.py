"""Confidence sequences: by hand, against the definition, and their coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gamespiel.config import InvalidValueError
from gamespiel.statistics.sequences import find_p_value, follow_mean, log_capital

BOUNDS = (-1.0, 1.0)


def test_won_deals_by_hand() -> None:
    """Against the mean 1/2 of values in [0, 1], a bet may lose half of the capital, so it wins half.

    The bets' plan is above this limit all the time here: at first 6.5 times the distance, and ones vary less
    and less. So half a stake is 0.5 * 1.5^n after n ones. It is 20 after n = log 40 / log 1.5 = 9.1: at 10.
    """
    capital = np.exp(log_capital(np.ones(12), 0.5))
    assert capital == pytest.approx(0.5 * 1.5 ** np.arange(1, 13))
    found = follow_mean([1.0] * 12, BOUNDS)
    excluded = found[:, 0] > 0
    # The grid's ends are rounded outwards, so the interval itself says so at 10 or right after.
    assert not excluded[:9].any() and excluded[10:].all()
    assert (found[:, 1] == 1).all()
    assert find_p_value([1.0] * 4, BOUNDS) == pytest.approx(1 / (0.5 * 1.5**4))
    assert find_p_value([], BOUNDS) == 1 and find_p_value([0.0] * 30, BOUNDS) == 1


def test_the_interval_is_the_set_of_means_that_nobody_won_against() -> None:
    values = np.random.default_rng(0).choice([0.0, 0.25, 0.5, 1.0], 60)
    low, high = follow_mean(values.tolist(), (0.0, 1.0))[-1]
    won = [mean for mean in np.linspace(0.001, 0.999, 999) if log_capital(values, mean).max() >= math.log(20)]
    left = [mean for mean in np.linspace(0.001, 0.999, 999) if mean not in won]
    assert (min(left) - low, high - max(left)) == (pytest.approx(0.001), pytest.approx(0.001))


def test_intervals_never_grow_and_follow_the_range() -> None:
    values = np.random.default_rng(1).uniform(-1, 1, 50).tolist()
    found = follow_mean(values, BOUNDS)
    assert (np.diff(found[:, 0]) >= 0).all() and (np.diff(found[:, 1]) <= 0).all()
    scaled = follow_mean([3 * value + 10 for value in values], (7.0, 13.0))
    assert scaled == pytest.approx(3 * found + 10)
    # A sequence looks only back.
    assert follow_mean(values[:20], BOUNDS) == pytest.approx(found[:20])
    wide, narrow = follow_mean(values, BOUNDS, 0.999)[-1], follow_mean(values, BOUNDS, 0.9)[-1]
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    with pytest.raises(InvalidValueError, match=r"must be in -1 … 1"):
        follow_mean([0.0, 1.5], BOUNDS)


def test_looking_after_every_deal_is_wrong_in_one_of_twenty_at_most() -> None:
    """1,000 comparisons of 200 deals, whose scores differ by -1, 0 or 1: 5% and three standard errors.

    ``python -m benchmarks.coverage`` has 10,000 of each of several kinds.
    """
    mean = 0.55
    values = np.random.default_rng(3).choice([0.0, 0.5, 1.0], (1000, 200), p=[0.2, 0.5, 0.3])
    wrong = (log_capital(values, mean).max(axis=1) >= math.log(20)).mean()
    assert wrong <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1000)
