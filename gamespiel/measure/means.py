"""Means over deals: estimates with their intervals, and the number of deals that a difference needs.

Each deal is one independent value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gamespiel.errors import InvalidValueError
from task_gym.stats import Z95, interval_of_equals

CONFIDENCE = 0.95
"""The confidence of intervals, before it is shared among the members of a family."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and what is known of its error.

    Attributes:
        mean: The mean.
        error: Its standard error; 0 if the mean is exact.
        freedom: Degrees of freedom of the error; infinite for an exact mean.
        deals: Number of values; 0 if the mean is exact.
        spread: Standard deviation of the values; 0 if they are equal or the mean is exact.
        bounds: The range of the values, if all were equal: then the interval follows from it.
    """

    mean: float
    error: float = 0.0
    freedom: float = math.inf
    deals: int = 0
    spread: float = 0.0
    bounds: tuple[float, float] | None = None

    @property
    def exact(self) -> bool:
        """Whether nothing was sampled."""
        return self.error == 0.0 and self.bounds is None

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Returns the two-sided interval: Student's, or that of equal values."""
        if self.bounds is not None:
            return interval_of_equals(self.mean, self.deals, self.bounds, confidence)
        if self.exact:
            return self.mean, self.mean
        half = student_quantile((1 + confidence) / 2, self.freedom) * self.error
        return self.mean - half, self.mean + half

    def p_value(self) -> float:
        """Returns the two-sided p-value of a mean of 0; of an exact mean, 0 or 1."""
        if self.bounds is not None:
            return _p_value_of_equals(self.mean, self.deals, self.bounds)
        if self.exact:
            return float(self.mean == 0)
        return min(1.0, 2 * student_tail(abs(self.mean) / self.error, self.freedom))


def estimate_mean(values: Sequence[float], bounds: tuple[float, float]) -> Estimate:
    """Returns the mean of independent values, one per deal.

    A deal's seats share its cards and the opponents' noise. They are one cluster, so their mean is one value.
    If all values are equal, their spread says nothing. The interval is then that of bounded values, as the
    "rule of three" is for shares.

    Args:
        values: One per deal.
        bounds: The least and the greatest value that a deal can have.

    Raises:
        InvalidValueError: there are no values, or one is outside the bounds.
    """
    low, high = bounds
    if not values:
        raise InvalidValueError("a mean over deals needs at least one deal")
    if not all(low - 1e-9 <= value <= high + 1e-9 for value in values):
        raise InvalidValueError(f"values over deals must be in {low:g} … {high:g}, not {list(values)!r:.80}")
    n = len(values)
    mean = math.fsum(values) / n
    variance = math.fsum((value - mean) ** 2 for value in values) / max(1, n - 1)
    # Equal values can differ by rounding.
    if variance > (1e-9 * (high - low)) ** 2:
        return Estimate(mean, math.sqrt(variance / n), n - 1, n, math.sqrt(variance))
    mean = min(max(mean, low), high)
    ends = interval_of_equals(mean, n, bounds, CONFIDENCE)
    error = max(mean - ends[0], ends[1] - mean) / Z95
    return Estimate(mean, error, math.inf, n, 0.0, bounds)


def pool_equally(estimates: Sequence[Estimate]) -> Estimate:
    """Returns the mean of independent estimates, each with the same weight, whatever its number of deals.

    The degrees of freedom are Welch's and Satterthwaite's. An estimate of equal values counts with the error
    that its own interval has.

    Raises:
        InvalidValueError: there are no estimates.
    """
    if not estimates:
        raise InvalidValueError("a pooled mean needs at least one estimate")
    if len(estimates) == 1:
        return estimates[0]
    count = len(estimates)
    mean = math.fsum(one.mean for one in estimates) / count
    parts = [one.error**2 for one in estimates]
    total = math.fsum(parts)
    below = math.fsum(part**2 / one.freedom for part, one in zip(parts, estimates, strict=True))
    deals = sum(one.deals for one in estimates)
    spread = math.sqrt(math.fsum(one.spread**2 for one in estimates)) / count
    freedom = total**2 / below if below else math.inf
    return Estimate(mean, math.sqrt(total) / count, freedom, deals, spread)


def student_quantile(probability: float, freedom: float) -> float:
    """Returns the quantile of Student's distribution; of the normal one for infinite ``freedom``."""
    from scipy.special import ndtri, stdtrit  # here, because it takes a good part of a second

    return float(ndtri(probability) if math.isinf(freedom) else stdtrit(freedom, probability))


def student_tail(value: float, freedom: float) -> float:
    """Returns the probability that a variable with Student's distribution is above ``value``."""
    from scipy.special import ndtr, stdtr

    return float(ndtr(-value) if math.isinf(freedom) else stdtr(freedom, -value))


def _p_value_of_equals(value: float, n: int, bounds: tuple[float, float]) -> float:
    """Returns the p-value of a mean of 0 if all ``n`` variables were ``value``, by the same inequality."""
    low, high = bounds
    if value == 0:
        return 1.0
    ratio = -low / (value - low) if value > 0 else high / (high - value)
    return float(min(1.0, 2 * max(0.0, ratio) ** n))


POWER = 0.8
"""The probability with which a difference is to be found if it is there."""


def count_deals(
    spread: float, difference: float, confidence: float = CONFIDENCE, power: float = POWER
) -> int:
    """Returns the deals after which a two-sided test finds a true difference with probability ``power``.

    Half of the squared deviate is Guenther's correction (1981) for a spread that has to be estimated.

    Args:
        spread: Standard deviation of a deal's difference.
        difference: The true difference, above 0.
        confidence: The confidence of the test's interval.
        power: The probability.

    Raises:
        InvalidValueError: the difference is not above 0.
    """
    if not difference > 0:
        raise InvalidValueError(f"the difference to tell must be above 0, not {difference}")
    known = (_deviates(confidence, power) * spread / difference) ** 2
    return math.ceil(known + student_quantile((1 + confidence) / 2, math.inf) ** 2 / 2)


def find_difference(spread: float, deals: int, confidence: float = CONFIDENCE, power: float = POWER) -> float:
    """Returns the least true difference that a test of so many deals finds with probability ``power``."""
    return _deviates(confidence, power) * spread / math.sqrt(deals)


def _deviates(confidence: float, power: float) -> float:
    return student_quantile((1 + confidence) / 2, math.inf) + student_quantile(power, math.inf)
