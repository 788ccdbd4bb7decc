"""Paired differences of agents, deal by deal, with intervals that are right together. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from gamespiel.measure.means import (
    CONFIDENCE,
    Estimate,
    count_deals,
    estimate_mean,
    know_mean,
    pool_equally,
)

POOLED = "all games"
"""The name of the row over all games."""

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Column:
    """An agent's results in one game.

    Attributes:
        estimates: Per deal, the mean over its seats of the score or of its estimate; None if an episode was a
            fault, or was not played.
        scores: The same of the score itself.
        bounds: The least and the greatest that an estimate can be.
        exact: The exact mean, which counts for every deal; None if there is none.
    """

    estimates: tuple[float | None, ...]
    scores: tuple[float | None, ...]
    bounds: Bounds
    exact: float | None = None

    @property
    def reduced(self) -> bool:
        """Whether estimates are other than scores."""
        return self.exact is None and self.estimates != self.scores


@dataclass(frozen=True)
class Difference:
    """The difference in score of two agents, in one game or over all.

    Attributes:
        first: The agent from whose score the other's is taken.
        second: The other one.
        game: The game, or ``POOLED``.
        estimate: The mean difference.
        faults: Deals that are left out, because one of the two had a fault.
        plain_spread: The standard deviation of the differences of scores as they were, if they were reduced.
        low: The interval's lower end: all intervals of the comparison are right with 95%.
        high: Its upper end.
        p_value: Holm's adjusted p-value; None if the difference is exact.
        needed: Deals of each game that would be needed; None if the difference is exact, or varied nowhere.
    """

    first: str
    second: str
    game: str
    estimate: Estimate
    faults: int = 0
    plain_spread: float | None = None
    low: float = float("nan")
    high: float = float("nan")
    p_value: float | None = None
    needed: int | None = None

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
        estimate = self.estimate
        return {
            "first": self.first,
            "second": self.second,
            "game": self.game,
            "difference": estimate.mean,
            "low": self.low,
            "high": self.high,
            "exact": estimate.exact,
            "p_value": self.p_value,
            "standard_error": estimate.error,
            "deals": estimate.deals,
            "faults": self.faults,
            "spread": estimate.spread,
            "plain_spread": self.plain_spread,
            "factor_saved": self.saved,
            "deals_needed": self.needed,
        }


def compare_columns(first: str, second: str, game: str, columns: Mapping[str, Column]) -> Difference:
    """Returns the difference of two agents in one game, deal by deal.

    Args:
        first: The agent from whose results the other's are taken.
        second: The other one.
        game: The game.
        columns: The results in this game by agent.
    """
    column, other = columns[first], columns[second]
    if column.exact is not None and other.exact is not None:
        return Difference(first, second, game, know_mean(column.exact - other.exact))
    values = _subtract(column, other, reduced=True)
    whole = [value for value in values if value is not None]
    plain = None
    if column.reduced or other.reduced:
        raw = [value for value in _subtract(column, other, reduced=False) if value is not None]
        plain = estimate_mean(raw, (-1.0, 1.0)).spread if raw else None
    bounds = column.bounds[0] - other.bounds[1], column.bounds[1] - other.bounds[0]
    estimate = estimate_mean(whole, bounds)
    return Difference(first, second, game, estimate, len(values) - len(whole), plain)


def _subtract(column: Column, other: Column, *, reduced: bool) -> list[float | None]:
    """Returns the differences deal by deal; None where one of them has no score."""
    pair = [one.estimates if reduced else one.scores for one in (column, other)]
    differences: list[float | None] = []
    for a, b in zip(*pair, strict=True):
        left = column.exact if column.exact is not None else a
        right = other.exact if other.exact is not None else b
        differences.append(None if left is None or right is None else left - right)
    return differences


def pool_differences(singles: Sequence[Difference]) -> Difference:
    """Returns the difference of two agents over all games, each with the same weight.

    Args:
        singles: Their differences in each game.
    """
    plain = None
    if any(one.plain_spread is not None for one in singles):
        spreads = [one.estimate.spread if one.plain_spread is None else one.plain_spread for one in singles]
        plain = math.hypot(*spreads) / len(singles)
    faults = sum(one.faults for one in singles)
    pooled = pool_equally([one.estimate for one in singles])
    return Difference(singles[0].first, singles[0].second, POOLED, pooled, faults, plain)


def compare_all(
    names: Sequence[str], columns: Mapping[str, Mapping[str, Column]], *, detect: float, anytime: bool
) -> list[Difference]:
    """Returns the differences of all pairs, in each game and, if there are several, over all of them.

    Args:
        names: The agents.
        columns: Game to the results by agent.
        detect: See ``finish_family``.
        anytime: See ``finish_family``.
    """
    differences: list[Difference] = []
    for first, second in combinations(names, 2):
        singles = [compare_columns(first, second, game, by_agent) for game, by_agent in columns.items()]
        differences += singles
        if len(singles) > 1:
            differences.append(pool_differences(singles))
    return finish_family(differences, detect=detect, anytime=anytime)


def finish_family(
    differences: Sequence[Difference],
    *,
    detect: float = 0.05,
    anytime: bool = False,
    shares: Sequence[float] | None = None,
) -> list[Difference]:
    """Returns differences with their intervals and p-values.

    All intervals together are right with a probability of 95%, however they depend on each other
    (Bonferroni), and so are all claims by adjusted p-values. Exact differences do not count among them.

    Args:
        differences: The differences.
        detect: The difference for which the needed deals are counted.
        anytime: Whether somebody looked at the results before all deals were played. Intervals and p-values
            are right all the same then, and wider.
        shares: The share of the error that each sampled difference may have, together at most 1, where the
            family is not known before: see ``share_by_entry``. P-values are over their share then.
    """
    sampled = [one for one in differences if not one.estimate.exact]
    p_values = [one.estimate.p_value(planned=not anytime) for one in sampled]
    if shares is None:
        adjusted, shares = adjust_by_holm(p_values), [1 / len(sampled) for _ in sampled]
    else:
        adjusted = [min(1.0, p / share) for p, share in zip(p_values, shares, strict=True)]
    finished = (
        _finish(one, 1 - (1 - CONFIDENCE) * share, detect, anytime, p)
        for one, share, p in zip(sampled, shares, adjusted, strict=True)
    )
    return [
        replace(one, low=one.estimate.mean, high=one.estimate.mean) if one.estimate.exact else next(finished)
        for one in differences
    ]


def _finish(one: Difference, confidence: float, detect: float, anytime: bool, p_value: float) -> Difference:
    """Returns a sampled difference with its interval, its p-value and the deals that it needs."""
    estimate = one.estimate
    low, high = estimate.interval(confidence, planned=not anytime)
    varied = estimate.spread > 0 and len(estimate.values) > 0
    return replace(
        one,
        low=low,
        high=high,
        p_value=p_value,
        needed=count_deals(estimate, detect, confidence) if varied else None,
    )


def decisive(differences: Sequence[Difference]) -> list[Difference]:
    """Returns the differences that say when it is clear: those over all games, or of the only game."""
    pooled = [one for one in differences if one.game == POOLED]
    return pooled or list(differences)


def adjust_by_holm(p_values: Sequence[float]) -> list[float]:
    """Returns Holm's adjusted p-values (Holm 1979), in the order given.

    Those of at most 0.05 may be called differences, and the probability that any such claim is wrong is at
    most 0.05, however the comparisons depend on each other.
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def share_by_entry(place: int) -> float:
    """Returns the share of each pair of the agent that entered at a place, from 2 on, with one before it.

    It does not depend on who comes later, so that intervals stay as they were when somebody does. All shares
    of any number of agents are together less than 1: those of a place are 1/(place - 1) - 1/place.
    """
    return 1 / (place * (place - 1) ** 2)
