"""Schedules at their ends and in the middle."""

from __future__ import annotations

import math

import pytest

from gamespiel.agents.learning.schedules import schedule
from task_gym.errors import ArgumentError


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        # At 1, 3/4, 1/2, 1/4 and 0 remaining, of 8.
        ("constant", (8, 8, 8, 8, 8)),
        ("linear", (8, 6, 4, 2, 0)),
        # 4 - 4 cos(pi r): cos(pi) = -1, cos(3 pi / 4) = -1/sqrt 2, 0, 1/sqrt 2, 1.
        ("cosine", (8, 4 + 4 / math.sqrt(2), 4, 4 - 4 / math.sqrt(2), 0)),
    ],
)
def test_by_hand(shape: str, expected: tuple[float, ...]) -> None:
    values = schedule(shape, 8.0)
    assert [values(remaining) for remaining in (1, 0.75, 0.5, 0.25, 0)] == pytest.approx(expected, abs=1e-12)


def test_an_unknown_shape_is_named() -> None:
    with pytest.raises(ArgumentError, match=r"'linaer' was given, allowed: .*did you mean 'linear'"):
        schedule("linaer", 1.0)


def test_an_end() -> None:
    """From 0.3 to 0.06: halfway at 0.18, the mean of the two, in either shape; a constant does not fall."""
    for shape in ("linear", "cosine"):
        falling = schedule(shape, 0.3, 0.06)
        assert [falling(remaining) for remaining in (1.0, 0.5, 0.0)] == pytest.approx([0.3, 0.18, 0.06])
    assert schedule("constant", 0.3, 0.06)(0.0) == pytest.approx(0.3)
