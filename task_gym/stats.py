"""Confidence intervals of sampled proportions and means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

Z95 = 1.959963984540054
"""Standard normal deviates within which 95% lie."""


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


def interval_of_equals(
    value: float, n: int, bounds: tuple[float, float], confidence: float = 0.95
) -> tuple[float, float]:
    """Returns the interval of a mean of bounded variables if all ``n`` of them were ``value``.

    Their spread is 0 and says nothing. By Markov's inequality a variable in [low, high] of mean m is
    ``value`` or above with probability (m - low) / (value - low) at most. All n are with the n-th power of
    it, which is half of the error allowed at the lower end. The "rule of three" does the same for shares.
    """
    low, high = bounds
    share = ((1 - confidence) / 2) ** (1 / n)
    return low + (value - low) * share, high - (high - value) * share


def mean_interval(values: Sequence[float], bounds: tuple[float, float] | None = None) -> Interval:
    """Returns a mean with its normal interval; of equal values, or of a single one, that of bounded values.

    Args:
        values: The values.
        bounds: The least and the greatest value that can be. Without them, equal values have no interval: it
            is unbounded.

    Raises:
        ValueError: there are no values, or one is outside the bounds.
    """
    n = len(values)
    if n < 1:
        raise ValueError("a mean needs at least one value")
    if bounds is not None and not bounds[0] <= min(values) <= max(values) <= bounds[1]:
        raise ValueError(f"values must be in {bounds[0]:g} … {bounds[1]:g}, got {list(values)!r:.80}")
    mean = sum(values) / n
    if min(values) == max(values):
        ends = (-math.inf, math.inf) if bounds is None else interval_of_equals(values[0], n, bounds)
        return Interval(values[0], *ends)
    error = Z95 * math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1) / n)
    return Interval(mean, mean - error, mean + error)
