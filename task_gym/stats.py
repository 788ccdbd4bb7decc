"""Confidence intervals of sampled proportions and means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Z95 = 1.959963984540054
"""Standard normal deviates within which 95% lie."""

MOST_LOST = 0.75
"""The largest share of the capital that a bet on one value can lose."""


class Interval(NamedTuple):
    """A point estimate and its 95% confidence interval.

    Attributes:
        mean: The point estimate.
        low: The interval's lower end.
        high: The interval's upper end.
    """

    mean: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """The distance from the mean to the farther end."""
        return max(self.mean - self.low, self.high - self.mean)


def wilson(successes: float, trials: int) -> Interval:
    """Returns a proportion with its Wilson score interval (Wilson 1927), in [0, 1] and never of width 0.

    If trials can succeed in part, ``successes`` is the sum of values in [0, 1]. No values with that mean vary
    more than zeros and ones do, so the interval is never too narrow.

    Raises:
        ValueError: there are no trials, or more successes than trials.
    """
    if trials < 1 or not 0 <= successes <= trials:
        raise ValueError(
            f"a proportion needs 0 <= successes <= trials and trials >= 1, got {successes}, {trials}"
        )
    p, z2 = successes / trials, Z95**2
    centre = (p + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z95 * math.sqrt(p * (1 - p) / trials + z2 / (4 * trials**2)) / (1 + z2 / trials)
    # At 0 and 1 one bound is p itself; rounding could put the bound on the wrong side of p.
    return Interval(p, max(0.0, min(p, centre - half)), min(1.0, max(p, centre + half)))


def bound_mean(
    values: npt.ArrayLike,
    bounds: tuple[npt.ArrayLike, npt.ArrayLike],
    confidence: float = 0.95,
    *,
    planned: bool = True,
) -> tuple[float, float]:
    """Returns the interval of one mean of bounded variables, whatever their distribution and however few.

    For each candidate mean somebody bets against it: half of the stake that the mean is greater, half that it
    is less. If the candidate is the true mean, the capital is 20 times the stake at some time with a
    probability of 5% at most. The candidates against which nobody has won so much are the interval
    (Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS B, 2024).

    The mean of several means, all with the same weight, has one value of each in a round. Bets on all values
    of a round are equal, and 1 + x is at most exp(x): so the capital cannot be expected to grow if the mean
    of means is the candidate, whatever each of them is.

    Args:
        values: Independent values in the order in which they came, shape (n,) or (rounds, means).
        bounds: The least and the greatest value that can be, numbers or shape (means,).
        confidence: The probability with which the mean is in the interval.
        planned: Whether the number of values was fixed before. Otherwise one may look after every round and
            stop when one likes: all intervals are right together, and wider.

    Returns:
        Its ends. The values' own mean is always between them.

    Raises:
        ValueError: a value is outside its bounds.
    """
    bets = _Bets(values, bounds, confidence, planned)
    ends, mean = bets.ends, bets.mean
    if not len(bets.values) or ends[0] == ends[1]:
        return ends
    return bets.find_end(mean, ends[0]), bets.find_end(mean, ends[1])


def find_p_value(
    values: npt.ArrayLike,
    bounds: tuple[npt.ArrayLike, npt.ArrayLike],
    null: float = 0.0,
    *,
    planned: bool = True,
) -> float:
    """Returns the two-sided p-value of the mean ``null``: 1 over the most capital of bets against it.

    See ``bound_mean`` for the arguments and errors.
    """
    bets = _Bets(values, bounds, 0.95, planned)
    low, high = bets.ends
    if not low < null < high:
        return float(bool((bets.values.mean(axis=1) == null).all()))
    return min(1.0, math.exp(-max(bets.find_most(null, above) for above in (True, False))))


class _Bets:
    """Bets on bounded values against candidate means; see ``bound_mean``.

    Attributes:
        values: Shape (rounds, means).
        mean: The values' mean.
        ends: The least and the greatest mean that can be.
    """

    HALVINGS = 40
    """Steps of a bisection between an interval's mean and its outermost end."""

    def __init__(
        self,
        values: npt.ArrayLike,
        bounds: tuple[npt.ArrayLike, npt.ArrayLike],
        confidence: float,
        planned: bool,
    ) -> None:
        table = np.asarray(values, dtype=np.float64)
        self.values = table = table[:, None] if table.ndim == 1 else table
        self._low, self._high = (np.broadcast_to(end, table.shape[1:]).astype(float) for end in bounds)
        rounding = 1e-9 * (self._high - self._low)
        if not ((table >= self._low - rounding) & (table <= self._high + rounding)).all():
            allowed = f"{self._low.min():g} … {self._high.max():g}"
            raise ValueError(f"values must be in {allowed}, got {table.ravel().tolist()!r:.80}")
        self.ends = float(self._low.mean()), float(self._high.mean())
        self.mean = float(np.clip(table.mean(), *self.ends)) if len(table) else sum(self.ends) / 2
        self._needed = math.log(1 / (1 - confidence))
        # A bet depends on earlier rounds alone, and on one value in the middle that was never drawn.
        rounds, numbers = len(table), np.arange(1, len(table) + 1)
        middle, width = (self._low + self._high) / 2, self._high - self._low
        means = np.vstack([middle, (middle + table.cumsum(axis=0)) / (numbers + 1)[:, None]])
        squares = ((table - means[1:]) ** 2).sum(axis=1).cumsum()
        seen = np.append(0.0, squares)[:rounds] + (width**2).sum() / 4
        variances = seen / numbers
        # Differences between the means are no errors: each is bet against at its own distance.
        self._offsets = means[:-1] - means[:-1].mean(axis=1, keepdims=True)
        rest = rounds if planned else numbers * np.log1p(numbers)
        self._sizes = np.sqrt(2 * math.log(2 / (1 - confidence)) / (variances * rest))

    def find_most(self, candidate: float, above: bool) -> float:
        """Returns the logarithm of the most capital that half of the stake had at any time."""
        centers = candidate + self._offsets
        if above:
            gains, risk = self.values - centers, (centers - self._low).max(axis=1)
        else:
            gains, risk = centers - self.values, (self._high - centers).max(axis=1)
        sizes = np.minimum(self._sizes, MOST_LOST / risk)
        capital = np.log1p(sizes[:, None] * gains).sum(axis=1).cumsum()
        return float(capital.max(initial=0.0)) - math.log(2)

    def find_end(self, inner: float, outer: float) -> float:
        """Returns the interval's end between its mean and the end of what can be."""
        above = outer < inner
        if inner == outer:
            return outer
        for _ in range(self.HALVINGS):
            candidate = (inner + outer) / 2
            if self.find_most(candidate, above) >= self._needed:
                outer = candidate
            else:
                inner = candidate
        return outer


def mean_interval(values: Sequence[float], bounds: tuple[float, float] | None = None) -> Interval:
    """Returns a mean with its interval: ``bound_mean``'s in a fixed order, or without bounds the normal one.

    Args:
        values: The values.
        bounds: The least and the greatest value that can be. Without them, equal values, or a single one,
            have no interval: it is unbounded.

    Raises:
        ValueError: there are no values, or one is outside the bounds.
    """
    n = len(values)
    if n < 1:
        raise ValueError("a mean needs at least one value")
    mean = sum(values) / n
    if bounds is not None:
        # Bets would win on an order, as of one opponent's games after another's, and the order says nothing.
        mixed = np.random.default_rng(0).permutation(values)
        return Interval(mean, *bound_mean(mixed, bounds))
    if min(values) == max(values):
        return Interval(mean, -math.inf, math.inf)
    error = Z95 * math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1) / n)
    return Interval(mean, mean - error, mean + error)
