"""What a comparison's episodes say: estimates of every contender and pair, and ratings. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from gamespiel.comparison.exactness import Knowledge
from gamespiel.comparison.hands import Hand, Record
from gamespiel.statistics.families import adjust_by_holm, share_confidence
from gamespiel.statistics.means import CONFIDENCE, Estimate, estimate_mean, pool_equally
from gamespiel.statistics.power import count_deals, find_difference
from gamespiel.statistics.ratings import RatingIntervals, bootstrap_ratings
from gamespiel.statistics.sequences import find_p_value, follow_mean

POOLED = "all games"
"""The name of the row over all games."""

Bounds = tuple[float, float]
Played = Mapping[tuple[str, int], Record]
"""Episodes by contender and place."""


@dataclass(frozen=True)
class Column:
    """A contender's results in one game.

    Attributes:
        estimates: Per deal, the mean over its seats of the score or of its estimate; None if an episode was a
            fault, or was not played.
        scores: The same of the score itself.
        bounds: The least and the greatest that an estimate can be.
        exact: The exact mean, which counts for every deal; None if there is none.
        seats: The scores of each deal by seat; None as above.
        shares: Per seat, the probability of each score, if they are exact.
    """

    estimates: tuple[float | None, ...]
    scores: tuple[float | None, ...]
    bounds: Bounds
    exact: float | None = None
    seats: tuple[tuple[float, ...] | None, ...] = ()
    shares: tuple[Mapping[float, float], ...] = ()

    @property
    def reduced(self) -> bool:
        """Whether estimates are other than scores."""
        return self.exact is None and self.estimates != self.scores


def make_column(
    name: str, hands: Sequence[Hand], played: Played, knowledge: Knowledge, rounds: int
) -> Column:
    """Returns a contender's results in one game, from its episodes.

    Args:
        name: The contender.
        hands: The game's episodes, in the order of its deals.
        played: The records.
        knowledge: What is known of the contender in this game.
        rounds: Deals that were played.
    """
    cell = knowledge.cell
    if cell is not None:
        nothing = (None,) * rounds
        return Column(nothing, nothing, (cell.score, cell.score), cell.score, nothing, cell.shares)
    deals: list[list[tuple[Hand, Record | None]]] = [[] for _ in range(rounds)]
    for hand in hands:
        if hand.deal.number < rounds:
            deals[hand.deal.number].append((hand, played.get((name, hand.place))))
    bounds: Bounds = (0.0, 1.0)
    if knowledge.estimators is not None:
        ends = [own.bounds for own in knowledge.estimators]
        bounds = sum(low for low, _ in ends) / len(ends), sum(high for _, high in ends) / len(ends)
    seats = [_read_scores(deal) for deal in deals]
    reduced = [
        None if scores is None else _estimate_deal(deal, knowledge)
        for deal, scores in zip(deals, seats, strict=True)
    ]
    plain = [None if scores is None else sum(scores) / len(scores) for scores in seats]
    return Column(tuple(reduced), tuple(plain), bounds, None, tuple(seats))


def _read_scores(deal: Sequence[tuple[Hand, Record | None]]) -> tuple[float, ...] | None:
    scores = [None if record is None else record["score"] for _, record in deal]
    known = [float(score) for score in scores if score is not None]
    return tuple(known) if len(known) == len(scores) else None


def _estimate_deal(deal: Sequence[tuple[Hand, Record | None]], knowledge: Knowledge) -> float:
    found = []
    for hand, record in deal:
        assert record is not None, "a deal without faults"
        score = float(record["score"])
        if knowledge.estimators is not None:
            assert hand.seat is not None, "games that are enumerated have seats"
            score = knowledge.estimators[hand.seat].estimate(record["history"], score)
        found.append(score)
    return sum(found) / len(found)


@dataclass(frozen=True)
class Difference:
    """The difference in score of two contenders, in one game or over all.

    Attributes:
        first: The contender from whose score the other's is taken.
        second: The other one.
        game: The game, or ``POOLED``.
        estimate: The mean difference.
        values: The differences deal by deal (pooled: round by round); empty if the difference is exact.
        bounds: The least and the greatest that a value can be.
        faults: Deals that are left out, because one of the two had a fault.
        plain_spread: The standard deviation of the differences of scores as they were, if they were reduced.
        low: The interval's lower end: all intervals of the comparison are right with 95%.
        high: Its upper end.
        p_value: Holm's adjusted p-value; None if the difference is exact.
        needed: Deals of each game that would be needed; None if the difference is exact, or varied nowhere.
        tells: The least difference that so many deals tell; None as ``needed``.
    """

    first: str
    second: str
    game: str
    estimate: Estimate
    values: tuple[float, ...]
    bounds: Bounds
    faults: int = 0
    plain_spread: float | None = None
    low: float = float("nan")
    high: float = float("nan")
    p_value: float | None = None
    needed: int | None = None
    tells: float | None = None

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0

    @property
    def saved(self) -> float | None:
        """The factor of deals that the estimates save over plain scores; None if they are the same."""
        if self.plain_spread is None or not self.estimate.spread:
            return None
        return (self.plain_spread / self.estimate.spread) ** 2

    def to_dict(self) -> dict[str, Any]:
        """Returns the difference as plain data."""
        found = self.estimate
        return {
            "first": self.first,
            "second": self.second,
            "game": self.game,
            "difference": found.mean,
            "low": self.low,
            "high": self.high,
            "exact": found.exact,
            "p_value": self.p_value,
            "standard_error": found.error,
            "deals": found.deals,
            "faults": self.faults,
            "spread": found.spread,
            "plain_spread": self.plain_spread,
            "factor_saved": self.saved,
            "deals_needed": self.needed,
            "tells": self.tells,
        }


def compare_columns(first: str, second: str, game: str, columns: Mapping[str, Column]) -> Difference:
    """Returns the difference of two contenders in one game, deal by deal.

    Args:
        first: The contender from whose results the other's are taken.
        second: The other one.
        game: The game.
        columns: The results in this game by contender.
    """
    own, other = columns[first], columns[second]
    bounds = own.bounds[0] - other.bounds[1], own.bounds[1] - other.bounds[0]
    if own.exact is not None and other.exact is not None:
        return Difference(first, second, game, Estimate(own.exact - other.exact), (), bounds)
    values = _subtract(own, other, reduced=True)
    kept = tuple(value for value in values if value is not None)
    plain = None
    if own.reduced or other.reduced:
        raw = [value for value in _subtract(own, other, reduced=False) if value is not None]
        plain = estimate_mean(raw, (-1.0, 1.0)).spread if raw else None
    estimate = estimate_mean(kept, bounds) if kept else Estimate(float("nan"), float("inf"))
    return Difference(first, second, game, estimate, kept, bounds, len(values) - len(kept), plain)


def _subtract(own: Column, other: Column, *, reduced: bool) -> list[float | None]:
    """Returns the differences deal by deal; None where one of them has no score."""
    pair = [one.estimates if reduced else one.scores for one in (own, other)]
    found: list[float | None] = []
    for a, b in zip(*pair, strict=True):
        left = own.exact if own.exact is not None else a
        right = other.exact if other.exact is not None else b
        found.append(None if left is None or right is None else left - right)
    return found


def pool_differences(
    first: str, second: str, columns: Mapping[str, Mapping[str, Column]], singles: Sequence[Difference]
) -> Difference:
    """Returns the difference of two contenders over all games, each with the same weight.

    Args:
        first: As ``compare_columns`` has it.
        second: As ``compare_columns`` has it.
        columns: Game to the results by contender.
        singles: The differences in each game.
    """
    bounds = (
        sum(one.bounds[0] for one in singles) / len(singles),
        sum(one.bounds[1] for one in singles) / len(singles),
    )
    estimate = pool_equally([one.estimate for one in singles])
    per_game = []
    for own in columns.values():
        a, b = own[first], own[second]
        exact = None if a.exact is None or b.exact is None else a.exact - b.exact
        per_game.append([exact if exact is not None else value for value in _subtract(a, b, reduced=True)])
    rounds = [
        sum(value for value in together if value is not None) / len(together)
        for together in zip(*per_game, strict=True)
        if None not in together
    ]
    values = () if estimate.exact else tuple(rounds)
    plain = None
    if any(one.plain_spread is not None for one in singles):
        spreads = [one.estimate.spread if one.plain_spread is None else one.plain_spread for one in singles]
        plain = float(np.sqrt(np.sum(np.square(spreads)))) / len(singles)
    faults = sum(one.faults for one in singles)
    return Difference(first, second, POOLED, estimate, values, bounds, faults, plain)


def compare_all(
    names: Sequence[str], columns: Mapping[str, Mapping[str, Column]], *, detect: float, anytime: bool
) -> list[Difference]:
    """Returns the differences of all pairs, in each game and, if there are several, over all of them.

    All intervals together are right with a probability of 95%, and so are all claims by adjusted p-values.
    Exact differences do not count among them.

    Args:
        names: The contenders.
        columns: Game to the results by contender.
        detect: The difference for which the needed deals are counted.
        anytime: Whether somebody looked at the results before all deals were played: then intervals and
            p-values are those of confidence sequences.
    """
    found: list[Difference] = []
    for first, second in combinations(names, 2):
        singles = [compare_columns(first, second, game, own) for game, own in columns.items()]
        found += singles
        if len(singles) > 1:
            found.append(pool_differences(first, second, columns, singles))
    sampled = [one for one in found if not one.estimate.exact]
    confidence = share_confidence(CONFIDENCE, len(sampled))
    adjusted = iter(adjust_by_holm([_find_p_value(one, anytime) for one in sampled]))
    return [_finish(one, confidence, detect, anytime, adjusted) for one in found]


def _find_p_value(one: Difference, anytime: bool) -> float:
    if not one.values:
        return 1.0
    return find_p_value(one.values, one.bounds) if anytime else one.estimate.p_value()


def _finish(one: Difference, confidence: float, detect: float, anytime: bool, adjusted: Any) -> Difference:
    """Returns a difference with its interval, its p-value and the deals that it needs."""
    estimate = one.estimate
    if estimate.exact:
        return replace(one, low=estimate.mean, high=estimate.mean)
    p_value = next(adjusted)
    if not one.values:
        return replace(one, low=one.bounds[0], high=one.bounds[1], p_value=p_value)
    low, high = (
        map(float, follow_mean(one.values, one.bounds, confidence)[-1])
        if anytime
        else estimate.interval(confidence)
    )
    deals = len(one.values)
    return replace(
        one,
        low=max(low, one.bounds[0]),
        high=min(high, one.bounds[1]),
        p_value=p_value,
        needed=count_deals(estimate.spread, detect, confidence) if estimate.spread else None,
        tells=find_difference(estimate.spread, deals, confidence) if estimate.spread else None,
    )


def decisive(differences: Sequence[Difference]) -> list[Difference]:
    """Returns the differences that say when it is clear: those over all games, or of the only game."""
    pooled = [one for one in differences if one.game == POOLED]
    return pooled or list(differences)


def rate_contenders(
    names: Sequence[str], columns: Mapping[str, Mapping[str, Column]], seed: int
) -> RatingIntervals | None:
    """Returns the contenders' ratings, as duplicate bridge has them; None if no deal counts.

    On each deal and seat, the contender with the better score beats the other; equal scores are a tie. A
    deal's seats count together as one deal. Where a contender is exact, its scores count by their
    probabilities.
    """
    results = [count_results(names, own) for own in columns.values()]
    results = [(wins, ties) for wins, ties in results if (wins + ties).any()]
    if not results:
        return None
    return bootstrap_ratings([wins for wins, _ in results], [ties for _, ties in results], seed)


def count_results(
    names: Sequence[str], columns: Mapping[str, Column]
) -> tuple[np.ndarray[Any, np.dtype[np.float64]], np.ndarray[Any, np.dtype[np.float64]]]:
    """Returns the results of a game deal by deal: parts won and parts tied, shape (deals, names, names).

    A game in which everything is exact has one deal.
    """
    sampled = [columns[name] for name in names if columns[name].exact is None]
    deals = len(sampled[0].seats) if sampled else 1
    wins, ties = (np.zeros((deals, len(names), len(names))) for _ in range(2))
    for (i, first), (j, second) in combinations(enumerate(names), 2):
        own, other = columns[first], columns[second]
        for deal in range(deals):
            a, b = _list_scores(own, deal), _list_scores(other, deal)
            if a is None or b is None:
                continue
            for left, right in zip(a, b, strict=True):
                won, lost, tied = _meet(left, right)
                wins[deal, i, j] += won / len(a)
                wins[deal, j, i] += lost / len(a)
                ties[deal, i, j] += tied / len(a)
            ties[deal, j, i] = ties[deal, i, j]
    return wins, ties


def _list_scores(column: Column, deal: int) -> Sequence[Mapping[float, float]] | None:
    """Returns the probability of each score, by seat: of a deal that was played, 1 for its score."""
    if column.exact is not None:
        return column.shares
    scores = column.seats[deal]
    return None if scores is None else [{round(score, 12): 1.0} for score in scores]


def _meet(left: Mapping[float, float], right: Mapping[float, float]) -> tuple[float, float, float]:
    """Returns the probabilities that the first score is greater, that the second is, and of a tie."""
    pairs = [(a, b, p * q) for a, p in left.items() for b, q in right.items()]
    won = sum(p for a, b, p in pairs if a > b)
    lost = sum(p for a, b, p in pairs if a < b)
    return won, lost, sum(p for a, b, p in pairs if a == b)
