"""Estimates over deals, ratings and confidence sequences, against values calculated by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from gamespiel.config import InvalidValueError
from gamespiel.measure.differences import adjust_by_holm, share_confidence
from gamespiel.measure.means import Estimate, count_deals, estimate_mean, find_difference, pool_equally
from gamespiel.measure.ratings import ELO, Scale, rate, rate_games
from gamespiel.measure.sequences import find_p_value, follow_mean, log_capital

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


# -- ratings -----------------------------------------------------------------------------------------------


def test_one_anchor_has_a_closed_form() -> None:
    """29.5 of 32 and a tie that is added are 30 to 3: odds of 10, which are 400 points."""
    found = rate(Scale((0.0,)), np.array([[29.5], [2.5]]), np.array([[32.0], [32.0]]))
    assert found == pytest.approx([400, -400])
    assert rate(Scale((150.0,), bias=40.0), np.array([29.5]), np.array([32.0])) == pytest.approx(510)


def test_ties_flatten_the_scale() -> None:
    """Between equals a tie has 1/2 (ν = 2): strengths of 4 and 1 have 4/9, 4/9 and 1/9, a score of 2/3."""
    scale = Scale((0.0,), ties=2.0)
    assert scale.expect(np.array(ELO * math.log(4))) == pytest.approx([2 / 3])
    assert rate(scale, np.array([99.5]), np.array([149.0])) == pytest.approx(ELO * math.log(4))


def test_a_rating_expects_the_sum_of_scores() -> None:
    scale, scores, counts = Scale((0.0, 60.0, 230.0), 0.3), np.array([18.0, 11.0, 4.0]), np.full(3, 20.0)
    found = rate(scale, scores, counts)
    assert ((20 + 1 / 3) * scale.expect(found)).sum() == pytest.approx(scores.sum() + 1 / 2)
    # Who won all has a finite rating: 40 won and a tie are odds of 81, with anchors alike.
    assert rate(Scale((0.0, 0.0)), np.full(2, 20.0), counts[:2]) == pytest.approx(400 * math.log10(81))


def test_games_count_equally_and_deals_are_drawn_whole() -> None:
    won, lost = np.ones((60, 1)), np.zeros((40, 1))
    counts = [np.ones((100, 1)), np.full((10, 1), 2.0)]
    even = np.ones((10, 1))  # won from one seat and lost from the other: no resample differs
    found = rate_games([Scale((0.0,))] * 2, [np.concatenate([won, lost]), even], counts, seed=0)
    assert found.points == pytest.approx(ELO * math.log(60.5 / 40.5) / 2)
    assert found.low is not None and found.high is not None
    # 1.96 / sqrt(100 * 0.24) = 0.40 in log odds, half of it for one of two games.
    assert (found.high - found.low) / 2 == pytest.approx(0.40 / 2 * ELO, rel=0.1)
    assert found == rate_games([Scale((0.0,))] * 2, [np.concatenate([won, lost]), even], counts, seed=0)
    assert rate_games([Scale((0.0,))], [won[:1]], [won[:1]], seed=0).low is None  # one deal
    assert rate_games([Scale((0.0,))], [won], [won], seed=0).low is None  # all are equal


def test_few_deals_have_the_rating_of_many_and_intervals_that_hold() -> None:
    """Matches drawn from the model: 19 games of three anchors, three deals of two matches with each."""
    generator, truth, scale = np.random.default_rng(7), 100.0, Scale((0.0, 300.0, 600.0))
    chances = scale.expect(np.array(truth))
    ratings = []
    for number in range(60):
        scores = list(generator.binomial(2, chances, (19, 3, 3)).astype(float))
        ratings.append(rate_games([scale] * 19, scores, [np.full((3, 3), 2.0)] * 19, number))
    # The mean of 60 ratings with a standard error of 5; 0.9 is 95% less two standard errors of a share.
    assert np.mean([rating.points for rating in ratings]) == pytest.approx(truth, abs=15)
    holds = [(rating.low or 0) <= truth <= (rating.high or 0) for rating in ratings]
    assert sum(holds) >= 0.85 * 60


# -- confidence sequences ----------------------------------------------------------------------------------


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


def test_looking_after_every_deal_is_wrong_in_one_of_twenty_at_most() -> None:
    """1,000 comparisons of 200 deals, whose scores differ by -1, 0 or 1: 5% and three standard errors."""
    mean = 0.55
    values = np.random.default_rng(3).choice([0.0, 0.5, 1.0], (1000, 200), p=[0.2, 0.5, 0.3])
    wrong = (log_capital(values, mean).max(axis=1) >= math.log(20)).mean()
    assert wrong <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 1000)


@pytest.mark.parametrize(
    ("calculate", "message"),
    [
        (lambda: estimate_mean([0.0, 1.5], BOUNDS), r"must be in -1 … 1"),
        (lambda: estimate_mean([], BOUNDS), "at least one deal"),
        (lambda: follow_mean([0.0, 1.5], BOUNDS), r"must be in -1 … 1"),
        (lambda: count_deals(0.5, math.nan), "above 0, not nan"),
    ],
)
def test_values_out_of_range_are_refused(calculate: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        calculate()
