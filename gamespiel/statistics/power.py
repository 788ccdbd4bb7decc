"""The number of deals that a comparison needs, and the difference that a number of deals can tell."""

from __future__ import annotations

import math

from gamespiel.errors import InvalidValueError
from gamespiel.statistics.means import CONFIDENCE, student_quantile

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
