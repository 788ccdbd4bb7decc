"""Unlisting: the share of episodes with the list falls by the plan, and follows from the address alone."""

from __future__ import annotations

import pytest

from task_gym.errors import ArgumentError
from task_gym.samplers import Unlisting


def test_the_share_falls_linearly() -> None:
    plan = Unlisting(2, 6)
    # (6 - step) / 4, within 0 and 1.
    assert [plan.share(step) for step in range(8)] == [1, 1, 1, 0.75, 0.5, 0.25, 0, 0]
    assert plan.draw(2, 50) == [True] * 50 and plan.draw(6, 50) == [False] * 50


def test_draws_follow_from_the_address() -> None:
    plan = Unlisting(0, 10, seed=3)
    drawn = plan.draw(4, 4000)
    assert drawn == Unlisting(0, 10, seed=3).draw(4, 4000) and drawn[:40] == plan.draw(4, 40)
    assert drawn != plan.draw(5, 4000) and drawn != Unlisting(0, 10, seed=4).draw(4, 4000)
    # 0.6 of 4,000: the standard deviation of the count is 31, so 4 of them are 124.
    assert abs(sum(drawn) - 2400) < 124


@pytest.mark.parametrize("steps", [(3, 3), (4, 2), (-1, 2), (0, 1.5)])
def test_steps_must_rise(steps: tuple[int, int]) -> None:
    with pytest.raises(ArgumentError, match="Unlisting: steps"):
        Unlisting(*steps)
