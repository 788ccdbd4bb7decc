"""Intervals for what was sampled."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

Z95 = 1.959963984540054


class Interval(NamedTuple):
    """A point estimate and its 95% confidence interval."""

    mean: float
    low: float
    high: float


def wilson(successes: float, trials: int) -> Interval:
    """A proportion with its Wilson score interval (Wilson 1927), which stays in [0, 1] and never has width 0.

    Of trials that can succeed in part, `successes` is the sum of values in [0, 1]: no values with that mean
    vary more than zeros and ones do, so that the interval is, if anything, too wide.

    Raises:
        ValueError: no trials, or more successes than trials.
    """
    if trials < 1 or not 0 <= successes <= trials:
        raise ValueError(
            f"a proportion needs 0 <= successes <= trials and trials >= 1, got {successes}, {trials}"
        )
    p, z2 = successes / trials, Z95**2
    centre = (p + z2 / (2 * trials)) / (1 + z2 / trials)
    half = Z95 * math.sqrt(p * (1 - p) / trials + z2 / (4 * trials**2)) / (1 + z2 / trials)
    # At 0 and 1 one bound is p itself, which rounding could put on the other side of it.
    return Interval(p, max(0.0, min(p, centre - half)), min(1.0, max(p, centre + half)))


def mean_interval(values: Sequence[float]) -> Interval:
    """A mean with its normal interval; of one value, the interval is unbounded.

    Raises:
        ValueError: no values.
    """
    n = len(values)
    if n < 1:
        raise ValueError("a mean needs at least one value")
    mean = sum(values) / n
    if n == 1:
        return Interval(mean, -math.inf, math.inf)
    error = Z95 * math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1) / n)
    return Interval(mean, mean - error, mean + error)
