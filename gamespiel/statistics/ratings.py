"""Ratings by maximum likelihood: the model of Bradley and Terry with ties as Davidson (1970) has them.

Player i with strength s beats player j with strength t with probability s / (s + t + ν √(s t)), and ties with
probability ν √(s t) / (s + t + ν √(s t)). Ratings are logarithms of strengths, on Elo's scale.

A maximum may not exist: ratings would be infinite, as those of a player who won everything. They are then
*penalised*: every player also wins half a deal and loses half a deal against one player who is added.
``Ratings.penalised`` says whether this was done.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gamespiel.errors import InvalidValueError

Array = npt.NDArray[np.float64]

ELO = 400 / math.log(10)
"""Points of Elo's scale per unit of a logarithmic strength: 400 points are odds of 10 to 1."""

PENALTY = 0.5
"""Deals that each player wins, and deals that it loses, against an added player if ratings are penalised."""

RESAMPLES = 1000
"""Resamples of a bootstrap."""

_STEPS, _TOLERANCE = 200, 1e-10


@dataclass(frozen=True)
class Ratings:
    """Ratings on Elo's scale; their mean is 0.

    Attributes:
        points: One per player.
        ties: The parameter ν: between equals a tie's probability is ν / (2 + ν). 0 if there were none.
        penalised: Whether there was no finite maximum, so that the likelihood was penalised.
    """

    points: tuple[float, ...]
    ties: float
    penalised: bool


@dataclass(frozen=True)
class RatingIntervals:
    """Ratings and their bootstrap intervals.

    Attributes:
        ratings: The ratings.
        intervals: (low, high) per player: the 2.5% and 97.5% quantiles over resampled deals.
        penalised_share: The share of resamples that had no finite maximum.
    """

    ratings: Ratings
    intervals: tuple[tuple[float, float], ...]
    penalised_share: float


def rate(wins: Array, ties: Array) -> Ratings:
    """Returns the ratings of players, from the results of each pair.

    Args:
        wins: Deals that player i won against player j, shape (players, players); fractions are allowed.
        ties: Deals that i and j tied, symmetric, of the same shape.

    Raises:
        InvalidValueError: the shapes differ, a number is negative, ties are not symmetric, or no two played.
    """
    wins, ties = _check(wins, ties)
    count = len(wins)
    if penalised := not _is_finite(wins, ties):
        wins, ties = _add_player(wins, ties)
    logs, tie = _maximise(wins, ties, anchored=penalised)
    own = logs[:count]
    return Ratings(tuple((ELO * (own - own.mean())).tolist()), tie, penalised)


def rate_games(wins: Sequence[Array], ties: Sequence[Array]) -> Ratings:
    """Returns ratings in which every game has the same weight, whatever its number of deals.

    Args:
        wins: Per game, the results deal by deal: the part of deal d that i won against j, shape
            (deals, players, players).
        ties: Per game, the part that i and j tied, of the same shape.
    """
    return rate(*_weigh(wins, ties, [np.ones(len(own)) for own in wins]))


def bootstrap_ratings(
    wins: Sequence[Array],
    ties: Sequence[Array],
    seed: int,
    resamples: int = RESAMPLES,
    *,
    few: bool = False,
) -> RatingIntervals:
    """Returns the ratings of ``rate_games`` with intervals from resampled deals.

    A deal is drawn as a whole: all seats and all pairs of players that met in it.

    Args:
        wins: As ``rate_games`` has them.
        ties: As ``rate_games`` has them.
        seed: Seed of the resamples.
        resamples: Number of resamples.
        few: Whether a resample draws one deal less than a game has, and gives each the more weight (Rao and
            Wu 1988): with few deals, resamples of all would vary too little. A game of one deal stays.
    """
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed)))
    drawn, penalised = [], 0
    for _ in range(resamples):
        found = rate(*_weigh(wins, ties, [_draw_counts(generator, len(own), few) for own in wins]))
        penalised += found.penalised
        drawn.append(found.points)
    low, high = np.quantile(np.asarray(drawn), [0.025, 0.975], axis=0)
    intervals = tuple(zip(low.tolist(), high.tolist(), strict=True))
    return RatingIntervals(rate_games(wins, ties), intervals, penalised / resamples)


def _draw_counts(generator: np.random.Generator, deals: int, few: bool) -> Array:
    drawn = max(1, deals - 1) if few else deals
    counts: Array = generator.multinomial(drawn, np.full(deals, 1 / deals)).astype(np.float64)
    return counts * (deals / drawn)


def _weigh(wins: Sequence[Array], ties: Sequence[Array], counts: Sequence[Array]) -> tuple[Array, Array]:
    """Returns the results of all games together, each game with the mean game's number of deals.

    Raises:
        InvalidValueError: there are no games, or one without deals.
    """
    if not wins or not all(len(own) for own in wins):
        raise InvalidValueError("ratings need games with at least one deal each")
    mean = sum(len(own) for own in wins) / len(wins)
    total = [
        sum(
            np.tensordot(count, own, axes=1) * (mean / len(own))
            for own, count in zip(games, counts, strict=True)
        )
        for games in (wins, ties)
    ]
    return np.asarray(total[0]), np.asarray(total[1])


def _check(wins: Array, ties: Array) -> tuple[Array, Array]:
    wins, ties = np.asarray(wins, dtype=np.float64), np.asarray(ties, dtype=np.float64)
    count = len(wins)
    if wins.shape != (count, count) or ties.shape != wins.shape or count < 2:
        raise InvalidValueError(
            f"ratings need two square arrays of the same players, not {wins.shape} and {ties.shape}"
        )
    if (wins < 0).any() or (ties < 0).any() or not np.allclose(ties, ties.T):
        raise InvalidValueError(
            "ratings need results of at least 0, and the ties of i and j as those of j and i"
        )
    wins, ties = wins * (1 - np.eye(count)), ties * (1 - np.eye(count))
    if not (wins + ties).any():
        raise InvalidValueError("ratings need at least one deal between two players")
    return wins, ties


def _is_finite(wins: Array, ties: Array) -> bool:
    """Returns whether the likelihood has a finite maximum.

    It has none if there is a direction along which it never falls: differences of ratings, and τ for the
    logarithm of ν, with d ≥ |2 τ| and d ≥ 0 for each pair with a win, and |d| ≤ 2 τ for each with a tie.
    Without ties τ plays no part. Directions with τ = 0 exist unless everybody can be reached from everybody
    along wins and ties (Ford 1957). With τ = 1, this is a system of difference constraints, which has a
    solution unless its graph has a cycle of negative length.
    """
    count = len(wins)
    reach = (wins + ties > 0) | np.eye(count, dtype=bool)
    for _ in range(max(1, math.ceil(math.log2(count)))):
        reach = reach @ reach
    if not reach.all():
        return False
    if not ties.any():
        return True
    lengths = np.where(wins > 0, -2.0, np.where(ties > 0, 2.0, np.inf))
    for middle in range(count):  # Floyd's and Warshall's shortest ways
        lengths = np.minimum(lengths, lengths[:, middle, None] + lengths[middle])
        if (lengths.diagonal() < 0).any():
            return True
    return False


def _add_player(wins: Array, ties: Array) -> tuple[Array, Array]:
    count = len(wins)
    more_wins, more_ties = np.zeros((count + 1, count + 1)), np.zeros((count + 1, count + 1))
    more_wins[:count, :count], more_ties[:count, :count] = wins, ties
    more_wins[count, :count] = more_wins[:count, count] = PENALTY
    return more_wins, more_ties


def _maximise(wins: Array, ties: Array, *, anchored: bool) -> tuple[Array, float]:
    """Returns logarithmic strengths and ν of the maximum, by Newton's method with halved steps.

    The logarithm of the likelihood is concave in both the logarithms of the strengths and that of ν.

    Args:
        wins: The deals that i won against j.
        ties: The deals that they tied.
        anchored: Whether the last player has rating 0; otherwise the first has.
    """
    count, tied = len(wins), bool(ties.any())
    fixed = count - 1 if anchored else 0
    free = [i for i in range(count) if i != fixed] + ([count] if tied else [])
    point = np.zeros(count + 1)
    value = _log_likelihood(point, wins, ties, tied)
    for _ in range(_STEPS):
        gradient, hessian = _derive(point, wins, ties, tied)
        step = np.zeros(count + 1)
        step[free] = np.linalg.solve(hessian[np.ix_(free, free)], gradient[free])
        size = 1.0
        while (new := _log_likelihood(point - size * step, wins, ties, tied)) < value and size > 1e-12:
            size /= 2
        point, value = point - size * step, max(new, value)
        if np.abs(step).max() < _TOLERANCE:
            break
    return point[:count], math.exp(point[count]) if tied else 0.0


def _probabilities(point: Array, tied: bool) -> tuple[Array, Array]:
    """Returns the probabilities that i beats j, and that they tie, shape (players, players) each."""
    logs = point[:-1]
    half = (logs[:, None] - logs[None, :]) / 2
    # All three over √(s t): e^half, e^-half and ν.
    tie = np.full_like(half, np.exp(point[-1]) if tied else 0.0)
    top = np.abs(half).max(initial=0.0)
    scale = np.exp(-top)
    win, loss, tie = np.exp(half - top), np.exp(-half - top), tie * scale
    total = win + loss + tie
    return win / total, tie / total


def _log_likelihood(point: Array, wins: Array, ties: Array, tied: bool) -> float:
    win, tie = _probabilities(point, tied)
    with np.errstate(divide="ignore"):
        found = np.where(wins > 0, wins * np.log(np.where(wins > 0, win, 1.0)), 0.0).sum()
        if tied:
            found += np.where(ties > 0, ties / 2 * np.log(np.where(ties > 0, tie, 1.0)), 0.0).sum()
    return float(found)


def _derive(point: Array, wins: Array, ties: Array, tied: bool) -> tuple[Array, Array]:
    """Returns gradient and Hessian of the logarithm of the likelihood, the logarithm of ν last.

    Of a deal, d = (logarithmic strength of i) - (that of j) counts +1/2 for a win of i, -1/2 for a loss and 0
    for a tie; the logarithm of ν counts 1 for a tie. In this exponential family the gradient is what was
    counted less its mean, and the Hessian is minus the deals times its covariance.
    """
    count = len(wins)
    win, tie = _probabilities(point, tied)
    played = wins + wins.T + ties
    lead = (win - win.T) / 2  # the mean of the count of d
    own = (wins - wins.T) / 2 - played * lead
    gradient = np.append(own.sum(axis=1), (ties - played * tie).sum() / 2)
    of_lead = played * ((win + win.T) / 4 - lead**2)
    hessian = np.zeros((count + 1, count + 1))
    hessian[:count, :count] = of_lead
    hessian[np.arange(count), np.arange(count)] = -of_lead.sum(axis=1)
    hessian[:count, count] = hessian[count, :count] = (played * lead * tie).sum(axis=1)
    hessian[count, count] = -(played * tie * (1 - tie)).sum() / 2
    if not tied:
        gradient[count], hessian[count] = 0.0, 0.0
        hessian[:, count] = 0.0
    return gradient, hessian
