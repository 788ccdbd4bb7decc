"""Ratings, against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gamespiel.config import InvalidValueError
from gamespiel.statistics.ratings import ELO, bootstrap_ratings, rate, rate_games


def pair(won: float, tied: float, lost: float) -> tuple[np.ndarray, np.ndarray]:
    """Wins and ties of two players."""
    return np.array([[0, won], [lost, 0]]), np.array([[0, tied], [tied, 0]])


def gap(points: tuple[float, ...]) -> float:
    return points[0] - points[1]


def test_two_players_have_a_closed_form() -> None:
    # Two free parameters for two free shares: strengths as wins to losses, and the tie's odds to their root.
    # 4 won, 2 tied, 1 lost: 400 log10(4) = 240.82 points, and 2 / sqrt(4 * 1) = 1.
    found = rate(*pair(4, 2, 1))
    assert gap(found.points) == pytest.approx(240.82, abs=0.01)
    assert (found.ties, found.penalised) == (pytest.approx(1), False)
    assert sum(found.points) == pytest.approx(0)
    # Without ties it is Bradley's and Terry's model: odds of 10 are 400 points.
    plain = rate(*pair(10, 0, 1))
    assert gap(plain.points) == pytest.approx(400) and plain.ties == 0


def test_three_players_win_as_often_as_the_model_says() -> None:
    wins = np.array([[0, 6, 3], [2, 0, 5], [4, 1, 0]], dtype=float)
    found = rate(wins, np.zeros((3, 3)))
    logs = np.array(found.points) / ELO
    chances = 1 / (1 + np.exp(logs[None, :] - logs[:, None]))
    played = wins + wins.T
    # The maximum's condition: each player's expected wins are those that it had.
    assert (played * chances).sum(axis=1) - played.diagonal() / 2 == pytest.approx(wins.sum(axis=1))


def test_games_count_equally() -> None:
    # 8 of 10 in one game and 20 of 100 in the other are 80% and 20%: equal. By deals it would be 28 of 110.
    def deals(won: int, lost: int) -> np.ndarray:
        return np.array([[[0, 1], [0, 0]]] * won + [[[0, 0], [1, 0]]] * lost, dtype=float)

    wins = [deals(8, 2), deals(20, 80)]
    none = [np.zeros_like(own) for own in wins]
    assert gap(rate_games(wins, none).points) == pytest.approx(0, abs=1e-6)


def test_a_player_who_won_everything_is_penalised() -> None:
    """10 to 0, and half a deal won and lost by each against a third.

    By symmetry the ratings are x and -x. The slope of 10 log s(2x) + log s(x) + log s(-x), where s is the
    logistic function, is 20 s(-2x) - tanh(x / 2): 0 at the maximum.
    """
    found = rate(*pair(10, 0, 0))
    x = found.points[0] / ELO
    assert found.penalised and x > 0
    assert 20 / (1 + math.exp(2 * x)) == pytest.approx(math.tanh(x / 2))


@pytest.mark.parametrize(
    ("wins", "ties", "finite"),
    [
        # All tied: the tie's odds would be infinite.
        ([[0, 0], [0, 0]], [[0, 3], [3, 0]], False),
        # Never lost: strength and the tie's odds grow together.
        ([[0, 5], [0, 0]], [[0, 5], [5, 0]], False),
        # 0 beat 1 and 1 beat 2, but 2 tied with 0: two steps up, one tie back.
        ([[0, 1, 0], [0, 0, 1], [0, 0, 0]], [[0, 0, 1], [0, 0, 0], [1, 0, 0]], True),
        # 0 beat 1, and ties lead back, but by two steps: 2 lies between.
        ([[0, 1, 0], [0, 0, 0], [0, 0, 0]], [[0, 0, 1], [0, 0, 1], [1, 1, 0]], False),
        # Two groups that never met.
        ([[0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], [[0] * 4] * 4, False),
    ],
)
def test_a_maximum_is_known_to_be_finite(
    wins: list[list[float]], ties: list[list[float]], finite: bool
) -> None:
    found = rate(np.array(wins, dtype=float), np.array(ties, dtype=float))
    assert found.penalised is not finite
    assert all(map(math.isfinite, found.points))


def test_a_bootstrap_draws_whole_deals() -> None:
    # In each deal, 0 won from one seat and lost from the other: every resample is even.
    wins, ties = [np.array([[[0, 0.5], [0.5, 0]]] * 10)], [np.zeros((10, 2, 2))]
    found = bootstrap_ratings(wins, ties, seed=0, resamples=20)
    assert np.array(found.intervals) == pytest.approx(np.zeros((2, 2)), abs=1e-6)
    assert found.penalised_share == 0
    # Deals that are won or lost as a whole vary: 6 of 10 won, sd of the log odds 1 / sqrt(10 * 0.24) = 0.65.
    apart = np.array([[[0, 1], [0, 0]]] * 60 + [[[0, 0], [1, 0]]] * 40, dtype=float)
    wide = bootstrap_ratings([apart], [np.zeros_like(apart)], seed=0, resamples=300)
    low, high = wide.intervals[0]
    # 100 deals: 1.96 / sqrt(100 * 0.24) = 0.40 in log odds, half of it for one of two players.
    assert (high - low) / 2 == pytest.approx(0.40 / 2 * ELO, rel=0.15)
    assert wide == bootstrap_ratings([apart], [np.zeros_like(apart)], seed=0, resamples=300)


def test_results_that_are_none_are_refused() -> None:
    with pytest.raises(InvalidValueError, match="at least one deal between"):
        rate(np.zeros((2, 2)), np.zeros((2, 2)))
    with pytest.raises(InvalidValueError, match="square arrays"):
        rate(np.zeros((2, 3)), np.zeros((2, 3)))
    with pytest.raises(InvalidValueError, match="ties of i and j"):
        rate(np.ones((2, 2)), np.array([[0.0, 1.0], [0.0, 0.0]]))
