"""Confidence intervals of sampled proportions and means."""

from __future__ import annotations

import math
from collections.abc import Sequence

from task_gym.stats import Z95, Interval, wilson

__all__ = ["Z95", "Interval", "mean_interval", "wilson"]


def mean_interval(values: Sequence[float]) -> Interval:
    """Returns a mean with its normal interval; the interval of a single value is unbounded.

    Raises:
        ValueError: there are no values.
    """
    n = len(values)
    if n < 1:
        raise ValueError("a mean needs at least one value")
    mean = sum(values) / n
    if n == 1:
        return Interval(mean, -math.inf, math.inf)
    error = Z95 * math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1) / n)
    return Interval(mean, mean - error, mean + error)
