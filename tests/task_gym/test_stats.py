"""Intervals of bounded means by betting, against capital calculated by hand and against simulations."""

from __future__ import annotations

import math

import numpy as np
import pytest

from task_gym.stats import bound_mean, find_p_value, mean_interval

UNIT = (0.0, 1.0)


def test_won_deals_by_hand() -> None:
    """Against 1/2 a bet on a value in [0, 1] may lose 3/4 of the capital, so it wins 3/4.

    The plan is above this limit all the time here: at first 6.5 times the distance, and ones vary less and
    less. So half of the stake is 0.5 · 1.75^n after n ones. It is 20 after log 40 / log 1.75 = 6.6: at 7.
    """
    for planned in (True, False):
        assert find_p_value([1.0] * 4, UNIT, 0.5, planned=planned) == pytest.approx(2 / 1.75**4)
        assert bound_mean([1.0] * 6, UNIT, planned=planned)[0] < 0.5 < bound_mean([1.0] * 7, UNIT)[0]
    # Against m a win is 0.75 · (1 - m) / m: ten of them are 40 at m = 0.75 / (40^0.1 - 0.25).
    assert bound_mean([1.0] * 10, UNIT) == (pytest.approx(0.75 / (40**0.1 - 0.25)), 1.0)


def test_nothing_known_is_the_whole_range() -> None:
    assert bound_mean([], UNIT) == UNIT and bound_mean([0.5], UNIT) == UNIT
    assert bound_mean(np.empty((0, 2)), ([0, 1], [1, 3])) == (0.5, 2.0)
    assert find_p_value([], UNIT, 0.5) == 1 and find_p_value([0.0] * 30, (-1, 1)) == 1
    # A mean at the end of the range has every value there.
    assert find_p_value([0.0, 0.1], UNIT) == 0 and find_p_value([0.0, 0.0], UNIT) == 1


def test_an_interval_follows_the_range_and_has_its_mean() -> None:
    values = np.random.default_rng(1).choice([0.0, 0.25, 0.5, 1.0], 60)
    low, high = bound_mean(values, UNIT)
    assert bound_mean(3 * values + 7, (7.0, 10.0)) == pytest.approx((3 * low + 7, 3 * high + 7))
    assert bound_mean(1 - values, UNIT) == pytest.approx((1 - high, 1 - low))
    wide, narrow = bound_mean(values, UNIT, 0.999), bound_mean(values, UNIT, 0.9)
    assert wide[0] < narrow[0] < values.mean() < narrow[1] < wide[1]
    # The p-value of the interval's end is what is left of its confidence.
    assert find_p_value(values, UNIT, low) == pytest.approx(0.05, rel=1e-6)


def test_means_of_means_differ_only_by_what_varies() -> None:
    """Three rounds of 22 means are as good as 66 values; their differences from each other cost little."""
    generator = np.random.default_rng(0)
    noise = generator.uniform(-0.2, 0.2, (3, 22))
    apart = noise + generator.uniform(0.2, 0.8, 22)
    (low, high), (alike_low, alike_high) = bound_mean(apart, UNIT), bound_mean(noise + 0.5, UNIT)
    assert high - low < 0.25 and high - low == pytest.approx(alike_high - alike_low, abs=0.05)


@pytest.mark.parametrize("planned", [True, False])
def test_one_mean_in_twenty_is_rejected_at_most(planned: bool) -> None:
    """1,000 samples each of rare wins, of ties with few decisions, and of means that are far apart.

    An interval misses the mean if and only if the mean's p-value is less than what its confidence leaves: 5%,
    and three standard errors here. Student's interval misses in 14% of the first.
    """
    generator = np.random.default_rng(3)
    most = 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1000)
    rare = (generator.random((1000, 300)) < 0.01).astype(float)
    ties = generator.choice([0.0, 0.5, 1.0], (1000, 20), p=[0.02, 0.9, 0.08])
    chances = np.array([0.02, 0.5, 0.9, 0.98])
    apart = (generator.random((1000, 25, 4)) < chances).astype(float)
    for samples, mean in ((rare, 0.01), (ties, 0.53), (apart, chances.mean())):
        missed = [find_p_value(sample, UNIT, mean, planned=planned) < 0.05 for sample in samples]
        assert np.mean(missed) <= most


def test_the_mean_of_a_mixture_does_not_depend_on_its_order() -> None:
    """250 evaluations against a weak opponent and then a strong one: bets on that order miss half of them."""
    generator = np.random.default_rng(4)
    chances = np.repeat([0.9, 0.1], 50)
    samples = (generator.random((250, 100)) < chances).astype(float)
    intervals = [mean_interval(sample.tolist(), UNIT) for sample in samples]
    assert np.mean([not low <= 0.5 <= high for _, low, high in intervals]) <= 0.05
    assert np.mean([not low <= 0.5 <= high for low, high in (bound_mean(one, UNIT) for one in samples)]) > 0.2
