"""Estimates over deals and ratings, against values calculated by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from gamespiel.config import InvalidValueError
from gamespiel.measure.differences import (
    Column,
    adjust_by_holm,
    compare_all,
    finish_family,
    share_by_entry,
)
from gamespiel.measure.means import (
    Estimate,
    count_deals,
    estimate_mean,
    know_mean,
    pool_equally,
)
from gamespiel.measure.ratings import ELO, Meetings, Scale, rate, rate_games, rate_meetings
from task_gym.stats import bound_mean

BOUNDS = (-1.0, 1.0)


def test_a_mean_by_hand() -> None:
    # Mean 0, sum of squares 1/2, so the variance is 1/6 and the error sqrt(1/24).
    mean = estimate_mean([0.5, -0.5, 0, 0], BOUNDS)
    assert (mean.mean, mean.deals, mean.p_value()) == (0, 4, 1)
    assert mean.error == pytest.approx(math.sqrt(1 / 24)) and mean.spread == pytest.approx(math.sqrt(1 / 6))
    assert mean.interval() == bound_mean([0.5, -0.5, 0, 0], BOUNDS)
    nothing = estimate_mean([], BOUNDS)
    assert math.isnan(nothing.mean) and nothing.interval() == BOUNDS and not nothing.exact


def test_games_count_equally_whatever_their_deals() -> None:
    # Errors of 0.5 / 2 and 0.5 / 4: together the root of the sum of squares, halved.
    few, many = estimate_mean([0.5, -0.5] * 2, BOUNDS), estimate_mean([1.0, 0.0] * 8, BOUNDS)
    pooled = pool_equally([few, many])
    assert (pooled.mean, pooled.deals) == (0.25, 20)
    assert pooled.error == pytest.approx(math.hypot(few.error, many.error) / 2)
    # A round has the next deal of each; twelve of the second are beyond the last round.
    assert pooled.values.tolist() == [[0.5, 1.0], [-0.5, 0.0]] * 2
    assert pool_equally([few]) is few


def test_a_game_of_faults_alone_leaves_the_mean_open() -> None:
    nothing, scores = Column((None,) * 3, (None,) * 3, (0.0, 1.0)), (1.0, 0.0, 0.5)
    played = Column(scores, scores, (0.0, 1.0))
    columns = {"hex": {"a": played, "b": Column((0.0,) * 3, (0.0,) * 3, (0.0, 1.0))}}
    columns["go"] = {"a": nothing, "b": played}
    for anytime in (False, True):
        pooled = compare_all(("a", "b"), columns, detect=0.1, anytime=anytime)[-1]
        assert math.isnan(pooled.estimate.mean) and (pooled.low, pooled.high) == (-1, 1)
        assert pooled.needed is None and pooled.faults == 3


def test_exact_means_have_no_error() -> None:
    pooled = pool_equally([know_mean(0.25), know_mean(-0.25)])
    assert pooled.exact and pooled.interval() == (0, 0) and pooled.p_value() == 1
    sampled = estimate_mean([0.3, -0.1] * 20, BOUNDS)
    half = pool_equally([know_mean(0.5), sampled])
    assert not half.exact and half.mean == pytest.approx(0.3)
    assert half.error == pytest.approx(sampled.error / 2)
    assert np.diff(half.interval()) < np.diff(sampled.interval()) / 1.5


@pytest.mark.trains
@pytest.mark.sample
def test_rare_wins_are_right_in_all_games_together() -> None:
    """One wins 2% of its seats and the other none, in 8 games of 100 deals: 40 families of nine intervals.

    5% and three standard errors may be wrong; of families of Student's intervals 44% are.
    """
    generator, names = np.random.default_rng(11), ("a", "b")
    wrong = 0
    for _ in range(40):
        columns = {}
        for game in "12345678":
            won = (generator.random((100, 2)) < 0.02).mean(axis=1).tolist()
            columns[game] = {
                name: Column(values, values, (0.0, 1.0))
                for name, values in zip(names, (tuple(won), (0.0,) * 100), strict=True)
            }
        family = compare_all(names, columns, detect=0.05, anytime=False)
        wrong += not all(one.low <= 0.02 <= one.high for one in family)
    assert wrong <= (0.05 + 3 * math.sqrt(0.05 * 0.95 / 40)) * 40


def test_holm_by_hand() -> None:
    # In order: 4 * 0.005, 3 * 0.01, 2 * 0.03, and 0.04, which may not be below the 0.06 before it.
    assert adjust_by_holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert adjust_by_holm([0.5, 0.9]) == [1, 1] and adjust_by_holm([]) == []


def test_whoever_enters_later_takes_nothing_from_the_pairs_before() -> None:
    assert [share_by_entry(place) for place in (2, 3, 4)] == pytest.approx([1 / 2, 1 / 12, 1 / 36])
    # The sum telescopes: 1/(place - 1) - 1/place for all pairs of a place.
    assert sum((place - 1) * share_by_entry(place) for place in range(2, 1001)) == pytest.approx(1 - 1 / 1000)
    values = tuple([1.0, 0.0, 1.0, 1.0] * 10)
    columns = {"hex": {name: Column(values, values, (0.0, 1.0)) for name in "abc"}}
    pairs = compare_all("abc", columns, detect=0.05, anytime=True)
    finished = finish_family(pairs, anytime=True, shares=[1 / 2, 1 / 12, 1 / 12])
    third = pairs[1].estimate.interval(1 - 0.05 / 3, planned=False)  # of a family that is known before
    assert (pairs[1].low, pairs[1].high) == pytest.approx(third)
    assert (finished[0].low, finished[0].high) == pairs[0].estimate.interval(0.975, planned=False)
    assert (finished[2].low, finished[2].high) == pairs[2].estimate.interval(1 - 0.05 / 12, planned=False)


@pytest.mark.parametrize(("difference", "games"), [(0.2, 1), (0.05, 8)])
def test_the_deals_for_a_difference_find_it_in_four_of_five(difference: float, games: int) -> None:
    generator = np.random.default_rng(5)
    chances = [0.2 - difference / 2, 0.6, 0.2 + difference / 2]

    def draw(deals: int) -> Estimate:
        values = generator.choice([-1.0, 0.0, 1.0], (games, deals), p=chances)
        return pool_equally([estimate_mean(row.tolist(), BOUNDS) for row in values])

    known = draw(5000)
    deals = count_deals(known, difference)
    hits = sum(draw(deals).interval()[0] > 0 for _ in range(60))
    # 0.8 and three standard errors of a share of 60.
    assert 0.64 * 60 <= hits <= 0.96 * 60


# -- ratings -----------------------------------------------------------------------------------------------


def test_one_anchor_has_a_closed_form() -> None:
    """29.5 of 32 and a tie that is added are 30 to 3: odds of 10, which are 400 points."""
    ratings = rate(Scale((0.0,)), np.array([[29.5], [2.5]]), np.array([[32.0], [32.0]]))
    assert ratings == pytest.approx([400, -400])
    assert rate(Scale((150.0,), bias=40.0), np.array([29.5]), np.array([32.0])) == pytest.approx(510)


def test_ties_flatten_the_scale() -> None:
    """Between equals a tie has 1/2 (ν = 2): strengths of 4 and 1 have 4/9, 4/9 and 1/9, a score of 2/3."""
    scale = Scale((0.0,), ties=2.0)
    assert scale.expect(np.array(ELO * math.log(4))) == pytest.approx([2 / 3])
    assert rate(scale, np.array([99.5]), np.array([149.0])) == pytest.approx(ELO * math.log(4))


def test_a_rating_expects_the_sum_of_scores() -> None:
    scale, scores, counts = Scale((0.0, 60.0, 230.0), 0.3), np.array([18.0, 11.0, 4.0]), np.full(3, 20.0)
    rating = rate(scale, scores, counts)
    assert ((20 + 1 / 3) * scale.expect(rating)).sum() == pytest.approx(scores.sum() + 1 / 2)
    # Who won all has a finite rating: 40 won and a tie are odds of 81, with anchors alike.
    assert rate(Scale((0.0, 0.0)), np.full(2, 20.0), counts[:2]) == pytest.approx(400 * math.log10(81))


def test_games_count_equally_and_deals_are_drawn_whole() -> None:
    won, lost = np.ones((60, 1)), np.zeros((40, 1))
    counts = [np.ones((100, 1)), np.full((10, 1), 2.0)]
    even = np.ones((10, 1))  # won from one seat and lost from the other: no resample differs
    rating = rate_games([Scale((0.0,))] * 2, [np.concatenate([won, lost]), even], counts, seed=0)
    assert rating.points == pytest.approx(ELO * math.log(60.5 / 40.5) / 2)
    assert rating.low is not None and rating.high is not None
    # 1.96 / sqrt(100 * 0.24) = 0.40 in log odds, half of it for one of two games.
    assert (rating.high - rating.low) / 2 == pytest.approx(0.40 / 2 * ELO, rel=0.1)
    assert rating == rate_games([Scale((0.0,))] * 2, [np.concatenate([won, lost]), even], counts, seed=0)
    assert rate_games([Scale((0.0,))], [won[:1]], [won[:1]], seed=0).low is None  # one deal
    assert rate_games([Scale((0.0,))], [won], [won], seed=0).low is None  # all are equal


@pytest.mark.parametrize("games", [9, 10])
def test_who_wins_all_of_a_game_may_be_stronger_by_any_number_of_points(games: int) -> None:
    """One of nine games is more than a tenth of them, one of ten is not; and so for games that are lost."""
    mixed, won, count = np.array([[1.0], [0.0], [1.0]]), np.ones((3, 1)), np.ones((3, 1))
    others, counts, scales = [mixed] * (games - 1), [count] * games, [Scale((0.0,))] * games
    above, below = (rate_games(scales, [*others, last], counts, seed=0) for last in (won, 1 - won))
    assert above.low is not None and below.high is not None
    assert (above.high is None) == (below.low is None) == (games == 9)


def test_ratings_from_meetings_expect_the_sums_of_scores_together() -> None:
    """At odds of 2 to 1 from zero each, the first has 4 to 1: it expects 10 * 4/5, and 2/3 of its tie."""
    scores = np.full((5, 1), (8 + 2 / 3 - 1 / 2) / 5)
    game = Meetings(Scale((0.0,)), {"a": 0.0, "b": 0.0}, [("a", "b")], scores, np.full((5, 1), 2.0))
    rated = rate_meetings([game], seed=0)
    assert [rated[name].points for name in "ab"] == pytest.approx([400 * math.log10(2), -400 * math.log10(2)])
    assert rated["a"].low is None  # all deals are equal
    # Who is rated far above loses everything, and all deals of one of four were faults.
    known = {"a": 1500.0, "b": 0.0, "c": -900.0, "d": 70.0}
    scores, counts = np.array([[0.0, 2.0, 0.0], [0.0, 1.0, 0.0], [0.0] * 3]), np.array([[2.0, 2.0, 0.0]] * 3)
    game = Meetings(Scale((0.0,)), known, [("a", "b"), ("b", "c"), ("c", "d")], scores, counts)
    found = {name: rating.points for name, rating in rate_meetings([game], seed=0).items()}
    assert sorted(found) == ["a", "b", "c"]

    def expect(margin: float) -> float:
        return 1 / (1 + 10 ** (-margin / 400))

    tied = {name: expect(found[name] - known[name]) - 1 / 2 for name in found}
    first, second = 6 * expect(found["a"] - found["b"]), 6 * expect(found["b"] - found["c"])
    assert [first + tied["a"], second - first + tied["b"], tied["c"] - second] == pytest.approx([0, 3, -3])


@pytest.mark.trains
@pytest.mark.sample
def test_few_deals_have_the_rating_of_many_and_intervals_that_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matches drawn from the model: 19 games of three anchors, three deals of two matches with each."""
    monkeypatch.setattr("gamespiel.measure.ratings.RESAMPLES", 100)
    generator, truth, scale = np.random.default_rng(7), 100.0, Scale((0.0, 300.0, 600.0))
    chances = scale.expect(np.array(truth))
    ratings = []
    for number in range(30):
        scores = list(generator.binomial(2, chances, (19, 3, 3)).astype(float))
        ratings.append(rate_games([scale] * 19, scores, [np.full((3, 3), 2.0)] * 19, number))
    # The mean of 30 ratings with a standard error of 7; 0.83 is 95% less three standard errors of a share.
    assert np.mean([rating.points for rating in ratings]) == pytest.approx(truth, abs=21)
    holds = [(rating.low or 0) <= truth <= (rating.high or 0) for rating in ratings]
    assert sum(holds) >= 0.83 * 30


@pytest.mark.parametrize(
    ("calculate", "message"),
    [
        (lambda: estimate_mean([0.0, 1.5], BOUNDS), r"must be in -1 … 1"),
        (lambda: pool_equally([]), "at least one estimate"),
        (lambda: count_deals(estimate_mean([0.0, 0.5], BOUNDS), math.nan), "above 0, not nan"),
    ],
)
def test_values_out_of_range_are_refused(calculate: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        calculate()
