"""Ratings on Elo's scale against anchors, whose own ratings are fixed: nobody else's results move them.

In the model of Bradley and Terry with ties as Davidson (1970) has them, an agent of rating r wins against an
anchor of rating a with odds of exp(h) to exp(-h), and ties with ν, where h = (r - a + b) / (2 · ELO). b is
what equals have in a game whose scores are not those of two sides, as in hearts. A rating depends on the sum
of scores alone: its likelihood is greatest where the sum is the expected one, also if scores are fractions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

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

BEYOND = 0.1
"""The share of games that were won, or lost, to the last match above which an interval has no end there: only
the tie that is added bounds how much stronger, or weaker, than the anchors the agent is in these."""

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
        return self.expect_margin(points[..., None] - np.asarray(self.anchors) + self.bias)[0]

    def expect_margin(self, margin: Array) -> tuple[Array, Array]:
        """Returns the expected scores at margins in points, and their derivatives, of the same shape."""
        half = margin / (2 * ELO)
        win, loss = np.exp(half), np.exp(-half)
        total = win + loss + self.ties
        slope = (2 + self.ties / 2 * (win + loss)) / total**2 / (2 * ELO)
        return (win + self.ties / 2) / total, slope


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
            show no spread. None also where games have no end below; see ``BEYOND``.
        high: The 97.5% quantile; None where ``low`` has none for the first two reasons, and where games have
            no end above.
        games: The number of games.
    """

    points: float
    low: float | None
    high: float | None
    games: int


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
    points, resampled = [], []
    for scale, sums, numbers in zip(scales, scores, counts, strict=True):
        points.append(float(rate(scale, sums.sum(axis=0), numbers.sum(axis=0))))
        # Few deals have few resamples, and each is rated once.
        times, places = np.unique(_draw_deals(generator, len(sums)), axis=0, return_inverse=True)
        resampled.append(rate(scale, times @ sums, times @ numbers)[places.ravel()])
    rating = _describe(points, resampled, min(map(len, scores)))
    lost = sum(not sums.any() for sums in scores)
    won = sum(bool((sums == numbers).all()) for sums, numbers in zip(scores, counts, strict=True))
    return replace(
        rating,
        low=None if lost > BEYOND * len(scores) else rating.low,
        high=None if won > BEYOND * len(scores) else rating.high,
    )


def _draw_deals(generator: np.random.Generator, deals: int) -> Array:
    """Returns the weights of a game's deals in each resample, shape (RESAMPLES, deals)."""
    few = max(1, deals - 1)
    times = generator.multinomial(few, np.full(deals, 1 / deals), RESAMPLES)
    return times.astype(np.float64) * (deals / few)


def _describe(points: Sequence[float], resampled: Sequence[Array], deals: int) -> Rating:
    """Returns the rating of an agent from its points in each game, and those of resamples of a game's deals.

    Args:
        points: Per game.
        resampled: Per game, shape (RESAMPLES,).
        deals: The fewest deals of a game.
    """
    low, high = np.quantile(sum(resampled) / len(points), [0.025, 0.975]).tolist()
    mean = math.fsum(points) / len(points)
    if deals > 1 and high > low:
        return Rating(mean, low, high, len(points))
    return Rating(mean, None, None, len(points))


@dataclass(frozen=True)
class Meetings:
    """The meetings of agents in one game.

    Attributes:
        scale: The game's scale.
        known: The agents' ratings in this game against the anchors, by name.
        pairs: The two agents of each meeting.
        scores: Sums of the first one's scores in each deal, shape (deals, pairs).
        counts: Numbers of matches, of the same shape; 0 where a deal is missing.
    """

    scale: Scale
    known: Mapping[str, float]
    pairs: Sequence[tuple[str, str]]
    scores: Array
    counts: Array


def rate_meetings(games: Sequence[Meetings], seed: int) -> dict[str, Rating]:
    """Returns the ratings of agents from their matches against each other, mean over the games of each.

    In each game they are those of the greatest likelihood together. Only differences would follow from
    meetings, so everybody has ``ADDED`` ties beside them with somebody of its own rating against the anchors.

    Args:
        games: The games.
        seed: Seed of the resamples, which have whole deals.
    """
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed)))
    points: dict[str, list[float]] = {}
    resampled: dict[str, list[Array]] = {}
    deals: dict[str, int] = {}
    for game in games:
        times = np.concatenate([np.ones((1, len(game.scores))), _draw_deals(generator, len(game.scores))])
        fitted = _fit_meetings(game, times @ game.scores, times @ game.counts)
        for name, column in zip(game.known, fitted.T, strict=True):
            counts = game.counts[:, [name in pair for pair in game.pairs]]
            if not counts.any():
                continue
            points.setdefault(name, []).append(float(column[0]))
            resampled.setdefault(name, []).append(column[1:])
            count = int(counts.any(axis=1).sum())
            deals[name] = min(count, deals.get(name, count))
    return {name: _describe(points[name], resampled[name], deals[name]) for name in points}


def _fit_meetings(game: Meetings, scores: Array, counts: Array) -> Array:
    """Returns the ratings of the greatest likelihood, shape (samples, agents).

    Args:
        game: The game.
        scores: Sums of scores, shape (samples, pairs).
        counts: Numbers of matches, of the same shape.
    """
    names = list(game.known)
    known = np.asarray([game.known[name] for name in names])
    sides = np.zeros((len(game.pairs), len(names)))  # 1 for the first of a pair, -1 for the second
    for place, (first, second) in enumerate(game.pairs):
        sides[place, names.index(first)], sides[place, names.index(second)] = 1, -1
    squares = (sides[:, :, None] * sides[:, None, :]).reshape(len(sides), -1)
    ratings = np.tile(known, (len(scores), 1))
    for _ in range(100):  # Newton's steps; the likelihood is concave
        expected, slope = game.scale.expect_margin(ratings @ sides.T)
        tied, tied_slope = game.scale.expect_margin(ratings - known)
        gradient = (scores - counts * expected) @ sides + ADDED * (0.5 - tied)
        curvature = (counts * slope @ squares).reshape(len(scores), len(names), len(names))
        curvature += ADDED * tied_slope[:, :, None] * np.eye(len(names))
        step = np.linalg.solve(curvature, gradient[..., None])[..., 0]
        step *= np.minimum(1, ELO / np.abs(step).max(axis=1, keepdims=True, initial=1e-300))
        ratings += step
        if np.abs(step).max() < 1e-6:
            break
    return ratings
