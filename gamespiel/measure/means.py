"""Means over deals: estimates with their intervals, and the number of deals that a difference needs.

Each deal is one independent value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gamespiel.errors import InvalidValueError
from task_gym.stats import MOST_LOST, bound_mean, find_p_value

CONFIDENCE = 0.95
"""The confidence of intervals, before it is shared among the members of a family."""

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and what is known of its error.

    Attributes:
        mean: The mean.
        values: The values, shape (rounds, means): a round has one value of each mean that is pooled. Shape
            (0, means) if all of them are exact, or nothing is known.
        low: The least that a value can be, shape (means,).
        high: The greatest that it can be; ``low`` if the mean is exact.
        error: The mean's standard error; 0 if it is exact.
        deals: Number of values; 0 if the mean is exact.
        spread: Standard deviation of the values; 0 if they are equal or the mean is exact.
    """

    mean: float
    values: Array
    low: Array
    high: Array
    error: float = 0.0
    deals: int = 0
    spread: float = 0.0

    @property
    def exact(self) -> bool:
        """Whether nothing was sampled."""
        return bool((self.low == self.high).all())

    def interval(self, confidence: float = CONFIDENCE, *, planned: bool = True) -> tuple[float, float]:
        """Returns the two-sided interval; see ``bound_mean``, of which it has the arguments."""
        low, high = bound_mean(self.values, (self.low, self.high), confidence, planned=planned)
        return min(low, self.mean), max(high, self.mean)

    def p_value(self, *, planned: bool = True) -> float:
        """Returns the two-sided p-value of a mean of 0; of an exact mean, 0 or 1."""
        if self.exact:
            return float(self.mean == 0)
        return find_p_value(self.values, (self.low, self.high), planned=planned)


def know_mean(mean: float) -> Estimate:
    """Returns a mean that is exact."""
    ends = np.full(1, mean)
    return Estimate(mean, np.empty((0, 1)), ends, ends)


def estimate_mean(values: Sequence[float], bounds: tuple[float, float]) -> Estimate:
    """Returns the mean of independent values, one per deal.

    A deal's seats share its cards and the opponents' noise. They are one cluster, so their mean is one value.

    Args:
        values: One per deal, in the order of the deals.
        bounds: The least and the greatest value that a deal can have.

    Raises:
        InvalidValueError: a value is outside the bounds.
    """
    low, high = bounds
    if not all(low - 1e-9 <= value <= high + 1e-9 for value in values):
        raise InvalidValueError(f"values over deals must be in {low:g} … {high:g}, not {list(values)!r:.80}")
    n, ends = len(values), (np.full(1, low), np.full(1, high))
    table = np.asarray(values, dtype=np.float64).reshape(n, 1)
    if not n:
        return Estimate(math.nan, table, *ends, error=math.inf)
    mean = math.fsum(values) / n
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / max(1, n - 1))
    # Equal values can differ by rounding.
    spread = 0.0 if spread <= 1e-9 * (high - low) else spread
    return Estimate(min(max(mean, low), high), table, *ends, spread / math.sqrt(n), n, spread)


def pool_equally(estimates: Sequence[Estimate]) -> Estimate:
    """Returns the mean of independent estimates, each with the same weight, whatever its number of deals.

    A round has the next deal of each. The one with the fewest deals decides how many rounds there are, and
    what others have beyond counts in the mean alone: so a round stays what it is when more are played.

    Raises:
        InvalidValueError: there are no estimates.
    """
    if not estimates:
        raise InvalidValueError("a pooled mean needs at least one estimate")
    if len(estimates) == 1:
        return estimates[0]
    count = len(estimates)
    rounds = min((len(one.values) for one in estimates if not one.exact), default=0)
    parts = [
        np.broadcast_to(one.low, (rounds, len(one.low))) if one.exact else one.values[:rounds]
        for one in estimates
    ]
    return Estimate(
        math.fsum(one.mean for one in estimates) / count,
        np.hstack(parts),
        np.concatenate([one.low for one in estimates]),
        np.concatenate([one.high for one in estimates]),
        math.hypot(*(one.error for one in estimates)) / count,
        sum(one.deals for one in estimates),
        math.hypot(*(one.spread for one in estimates)) / count,
    )


POWER = 0.8
"""The probability with which a difference is to be found if it is there."""

MOST_DEALS = 10**9
"""More deals are not counted."""


def count_deals(estimate: Estimate, difference: float, confidence: float = CONFIDENCE) -> int:
    """Returns the deals after which a true difference from 0 is found with probability ``POWER``.

    They are a number that is fixed before, with the spread and the bounds of an estimate: what bets against a
    mean of 0 win then.

    Args:
        estimate: Has the spread. It is above 0.
        difference: The true difference, above 0.
        confidence: The confidence of the test's interval.

    Raises:
        InvalidValueError: the difference is not above 0.
    """
    if not difference > 0:
        raise InvalidValueError(f"the difference to tell must be above 0, not {difference}")
    few, many = 0, 1
    while not _finds(estimate, many, difference, confidence) and many < MOST_DEALS:
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        if _finds(estimate, middle, difference, confidence):
            many = middle
        else:
            few = middle
    return many


def _finds(estimate: Estimate, deals: int, difference: float, confidence: float) -> bool:
    """Returns whether bets on so many deals win enough against a mean of 0 with probability ``POWER``."""
    from scipy.special import ndtri  # here, because it takes a good part of a second

    means = len(estimate.low)
    needed = math.log(2 / (1 - confidence))
    risk = float(max(-estimate.low.min(), estimate.high.max()))
    variance = estimate.spread**2
    # The prior that the bets begin with counts as one deal.
    seen = variance + float(((estimate.high - estimate.low) ** 2).sum()) / (4 * means**2 * deals)
    bet = min(math.sqrt(2 * needed / (deals * seen)), MOST_LOST * means / risk)
    expected = deals * (bet * difference - bet**2 * (variance + difference**2 / means) / 2)
    return bool(expected - float(ndtri(POWER)) * bet * math.sqrt(deals * variance) >= needed)
