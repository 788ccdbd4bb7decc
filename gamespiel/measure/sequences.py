"""Confidence sequences of bounded values: intervals that are right at all times together.

One may look after every deal, and stop when one likes. The method is the hedged capital of Waudby-Smith and
Ramdas, "Estimating means of bounded random variables by betting" (JRSS B, 2024): for each candidate mean,
somebody bets against it. If the candidate is the true mean, the capital is 20 times the stake at some time
with a probability of 5% at most. The candidates against which nobody has won so much are the interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gamespiel.errors import InvalidValueError
from gamespiel.measure.means import CONFIDENCE

Array = npt.NDArray[np.float64]

GRID = 1001
"""Candidate means; the interval's ends are rounded outwards to them."""

MOST = 0.5
"""The largest share of the capital that a bet can lose."""

_AT_ONCE = 1 << 21
"""Numbers of a table of capital: candidates times values."""


def log_capital(values: Array, mean: float | Array, confidence: float = CONFIDENCE) -> Array:
    """Returns the logarithm of the hedged capital of bets against a mean, after each value.

    Half of the stake bets that the mean is greater, half that it is less; the capital is the larger half's.
    What is bet on a value depends on earlier values alone.

    Args:
        values: In [0, 1], shape (..., n).
        mean: The candidate, in [0, 1]; a number, or an array that broadcasts with shape (..., n).
        confidence: Scales the bets to what is to be won.

    Returns:
        Shape (..., n), of the broadcast.
    """
    bets = _plan_bets(values, confidence)
    with np.errstate(divide="ignore"):
        above = np.log1p(np.minimum(bets, MOST / np.asarray(mean)) * (values - mean))
        below = np.log1p(-np.minimum(bets, MOST / (1 - np.asarray(mean))) * (values - mean))
    capital: Array = np.maximum(above.cumsum(axis=-1), below.cumsum(axis=-1)) + math.log(0.5)
    return capital


def _plan_bets(values: Array, confidence: float) -> Array:
    """Returns the bet on each value from the values before it, shape (..., n).

    It is the predictable plug-in of the paper: large where the values vary little, and smaller with time.
    """
    n = values.shape[-1]
    numbers = np.arange(1, n + 1)
    means = (0.5 + values.cumsum(axis=-1)) / (numbers + 1)
    variances = (0.25 + ((values - means) ** 2).cumsum(axis=-1)) / (numbers + 1)
    before = np.concatenate([np.full((*values.shape[:-1], 1), 0.25), variances[..., :-1]], axis=-1)
    bets: Array = np.sqrt(2 * math.log(2 / (1 - confidence)) / (before * numbers * np.log1p(numbers)))
    return bets


def follow_mean(
    values: Sequence[float], bounds: tuple[float, float], confidence: float = CONFIDENCE
) -> Array:
    """Returns the confidence sequence of the mean: with ``confidence``, all of its intervals are right.

    Args:
        values: One per deal, in the order in which they were looked at.
        bounds: The least and the greatest value that a deal can have.
        confidence: The probability with which every interval has the mean in it.

    Returns:
        The interval after each value, shape (n, 2). It never grows.

    Raises:
        InvalidValueError: a value is outside the bounds.
    """
    scaled = _scale(values, bounds)
    grid = np.linspace(0, 1, GRID)
    alive = np.ones(GRID, dtype=bool)
    out = np.empty((len(scaled), 2))
    dropped = _find_rejections(scaled, grid, confidence)
    first, last = 0, GRID - 1
    for time in range(len(scaled)):
        alive &= dropped > time
        left = alive.nonzero()[0]
        if len(left):  # else every candidate is rejected: the last ones stay
            first, last = int(left[0]), int(left[-1])
        out[time] = grid[max(first - 1, 0)], grid[min(last + 1, GRID - 1)]
    low, high = bounds
    return low + out * (high - low)


def find_p_value(values: Sequence[float], bounds: tuple[float, float], null: float = 0.0) -> float:
    """Returns a p-value of the mean ``null`` that is valid whenever one stops: 1 over the most capital.

    Raises:
        InvalidValueError: a value is outside the bounds.
    """
    scaled, low, high = _scale(values, bounds), *bounds
    if not len(scaled):
        return 1.0
    if not low < null < high:
        return float(all(value == null for value in values))
    return min(1.0, math.exp(-float(log_capital(scaled, (null - low) / (high - low)).max())))


def _find_rejections(values: Array, grid: Array, confidence: float) -> npt.NDArray[np.int64]:
    """Returns the index of the value after which each candidate is rejected; that after the last if none."""
    n, won = len(values), math.log(1 / (1 - confidence))
    found = np.full(len(grid), n)
    step = max(1, _AT_ONCE // max(1, n))
    for start in range(0, len(grid), step):
        part = slice(start, start + step)
        rich = log_capital(values, grid[part, None], confidence) >= won
        found[part] = np.where(rich.any(axis=1), rich.argmax(axis=1), n)
    return found


def _scale(values: Sequence[float], bounds: tuple[float, float]) -> Array:
    low, high = bounds
    scaled = (np.asarray(values, dtype=np.float64) - low) / (high - low)
    if len(scaled) and not (scaled.min() >= -1e-9 and scaled.max() <= 1 + 1e-9):
        raise InvalidValueError(f"values over deals must be in {low:g} … {high:g}, not {list(values)!r:.80}")
    clipped: Array = scaled.clip(0, 1)
    return clipped
