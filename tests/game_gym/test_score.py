"""Scores, results and forfeits, by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from game_gym.score import forfeit_returns, outcome, seat_score


@pytest.mark.parametrize(
    ("returns", "zero_sum", "low", "high", "scores"),
    [
        ([5, -5], True, -13, 13, [18 / 26, 8 / 26]),  # the recorded leduc game: 0.692307692
        ([0, 0], True, -1, 1, [0.5, 0.5]),
        ([30], False, 0, 120, [0.25]),
        ([7], False, 7, 7, [0.5]),  # no range to scale by
        ([130], False, 0, 120, [1]),  # bounds that are none: 2048 can pay more than it states
        ([3, 2], False, 0, 9, [1, 0]),
        ([2, 2], False, 0, 9, [0.5, 0.5]),
        ([4, 9, 1, 6], False, 0, 9, [1 / 3, 1, 0, 2 / 3]),
        ([4, 4, 1], False, 0, 9, [1, 1, 0]),  # nobody ahead of either
    ],
)
def test_scores(returns: list[float], zero_sum: bool, low: float, high: float, scores: list[float]) -> None:
    assert [seat_score(returns, s, zero_sum, low, high) for s in range(len(returns))] == pytest.approx(scores)


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=4), st.booleans())
def test_scores_lie_between_0_and_1_and_grow_with_the_return(returns: list[float], zero_sum: bool) -> None:
    scores = [seat_score(returns, seat, zero_sum, -9, 9) for seat in range(len(returns))]
    assert all(0 <= score <= 1 for score in scores)
    order = sorted(range(len(returns)), key=lambda seat: returns[seat])
    assert [scores[seat] for seat in order] == sorted(scores)


@pytest.mark.parametrize(
    ("returns", "seat", "score", "result"),
    [
        ([1, -1], 0, 1, "win"),
        ([1, -1], 1, 0, "loss"),
        ([0, 0], 1, 0.5, "draw"),
        ([3, 3, 0], 0, 1, "draw"),
        ([3, 3, 0], 2, 0, "loss"),
        ([5], 0, 0.6, "win"),
        ([5], 0, 0.5, "draw"),
        ([5], 0, 0.1, "loss"),
    ],
)
def test_results(returns: list[float], seat: int, score: float, result: str) -> None:
    assert outcome(returns, seat, score) == result


def test_a_forfeit_is_the_least_return() -> None:
    assert forfeit_returns([0, 0], 1, True, -13) == [13, -13]
    assert forfeit_returns([0, 0, 0], 0, True, -6) == [-6, 3, 3]  # the others share what it lost
    assert forfeit_returns([2, 5], 1, False, 0) == [2, 0]
    assert forfeit_returns([2], 0, False, -1) == [-1]
