"""Confidence intervals of sampled proportions and means."""

from __future__ import annotations

import math
from collections.abc import Sequence

from task_gym.stats import Z95, Interval, interval_of_equals, wilson

__all__ = ["Z95", "Interval", "mean_interval", "wilson"]


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
