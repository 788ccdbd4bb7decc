"""Ratings on Elo's scale against anchors, whose own ratings are fixed: nobody else's results move them.

In the model of Bradley and Terry with ties as Davidson (1970) has them, an agent of rating r wins against an
anchor of rating a with odds of exp(h) to exp(-h), and ties with ν, where h = (r - a + b) / (2 · ELO). b is
what equals have in a game whose scores are not those of two sides, as in hearts. A rating depends on the sum
of scores alone: its likelihood is greatest where the sum is the expected one, also if scores are fractions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

ELO = 400 / math.log(10)
"""Points of Elo's scale per unit of a logarithmic strength: 400 points are odds of 10 to 1."""

ADDED = 1.0
"""Ties that everybody has beside the matches, spread over the anchors: so who won all has a finite rating,
and the mean rating after few deals is nearly that after many (Firth 1993, where the anchors are alike)."""

WIDEST = 4000.0
"""Ratings are looked for between minus this and this."""

RESAMPLES = 1000
"""Resamples of a bootstrap."""


@dataclass(frozen=True)
class Scale:
    """The scale of a game.

    Attributes:
        anchors: The anchors' ratings.
        ties: The parameter ν: between equals a tie's probability is ν / (2 + ν). 0 if there are none.
        bias: The points b, 0 in games of two sides.
    """

    anchors: tuple[float, ...]
    ties: float = 0.0
    bias: float = 0.0

    def expect(self, points: Array) -> Array:
        """Returns the expected scores against the anchors, shape (…, anchors), of ratings of shape (…)."""
        half = (points[..., None] - np.asarray(self.anchors) + self.bias) / (2 * ELO)
        win, loss = np.exp(half), np.exp(-half)
        expected: Array = (win + self.ties / 2) / (win + loss + self.ties)
        return expected


def rate(scale: Scale, scores: Array, counts: Array) -> Array:
    """Returns the rating of the greatest likelihood, for each of several results.

    Args:
        scale: The game's scale.
        scores: Sums of scores against each anchor, shape (…, anchors).
        counts: Numbers of matches, of the same shape.
    """
    added = ADDED / len(scale.anchors)
    scores, counts = scores + added / 2, counts + added
    low = np.full(scores.shape[:-1], -WIDEST)
    high = -low
    for _ in range(44):  # the expected score rises with the rating
        middle = (low + high) / 2
        above = (counts * scale.expect(middle)).sum(axis=-1) > scores.sum(axis=-1)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    points: Array = (low + high) / 2
    return points


@dataclass(frozen=True)
class Rating:
    """A rating with its bootstrap interval.

    Attributes:
        points: The mean over the games.
        low: The 2.5% quantile over resampled deals; None if a game has one deal, or all deals are equal: they
            show no spread.
        high: The 97.5% quantile.
    """

    points: float
    low: float | None
    high: float | None


def rate_games(
    scales: Sequence[Scale], scores: Sequence[Array], counts: Sequence[Array], seed: int
) -> Rating:
    """Returns the mean rating over games, each with the same weight, whatever its number of deals.

    A deal is drawn as a whole. A resample has one deal less than a game, each with the more weight (Rao and
    Wu 1988): with few deals, resamples of all would vary too little.

    Args:
        scales: The games' scales.
        scores: Per game, the sums of scores in each deal against each anchor, shape (deals, anchors).
        counts: Per game, the numbers of matches, of the same shape.
        seed: Seed of the resamples.
    """
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed)))
    points, resampled = [], np.zeros(RESAMPLES)
    for scale, sums, numbers in zip(scales, scores, counts, strict=True):
        points.append(float(rate(scale, sums.sum(axis=0), numbers.sum(axis=0))))
        deals = len(sums)
        few = max(1, deals - 1)
        times = generator.multinomial(few, np.full(deals, 1 / deals), RESAMPLES) * (deals / few)
        resampled += rate(scale, times @ sums, times @ numbers) / len(scales)
    mean = math.fsum(points) / len(points)
    low, high = np.quantile(resampled, [0.025, 0.975]).tolist()
    shows_spread = min(map(len, scores)) > 1 and high > low
    return Rating(mean, low, high) if shows_spread else Rating(mean, None, None)
