"""The pool of earlier selves: who is in it, and who is drawn."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from gamespiel.agents.learning.pool import MEMORY, Member, Pool
from gamespiel.agents.models.snapshots import Snapshot
from task_gym.errors import TaskGymError
from tests.agents.toys import make_policy


def filled(pick: str, *win_rates: float) -> Pool:
    pool = Pool(pick=pick)
    pool.members = [Member(Snapshot(step, {}), 10, rate) for step, rate in enumerate(win_rates)]
    return pool


def test_it_grows_every_few_steps_and_forgets_the_oldest() -> None:
    policy, pool = make_policy(), Pool(every=3, size=2)
    seen = []
    for step in (0, 0, 1, 3, 3, 5, 6, 9):
        pool.grow(policy.adapters.learning, step)
        seen.append([member.snapshot.step for member in pool.members])
    assert seen == [[0], [0], [0], [0, 3], [0, 3], [0, 3], [3, 6], [6, 9]]
    late = Pool(every=10)
    late.grow(policy.adapters.learning, 7)
    assert [member.snapshot.step for member in late.members] == [7]


def test_weights() -> None:
    """1 - win rate: 0.8, 0.2 and, at least, 0.05, of 1.05 in all."""
    assert np.array_equal(filled("newest", 0.2, 0.8, 1.0).weights(), [0, 0, 1])
    assert np.allclose(filled("uniform", 0.2, 0.8, 1.0).weights(), [1 / 3] * 3)
    assert np.allclose(filled("win_rate", 0.2, 0.8, 1.0).weights(), [0.8 / 1.05, 0.2 / 1.05, 0.05 / 1.05])


def test_draws_follow_the_weights() -> None:
    """A member gets as many of the numbers (i + 0.5) / 21 as its weight in 21sts: 16, 4 and 1."""
    drawn = filled("win_rate", 0.2, 0.8, 1.0).draw((np.arange(21) + 0.5) / 21)
    assert Counter(drawn) == {0: 16, 1: 4, 2: 1}
    assert filled("newest", 0.5, 0.5).draw(np.array([0.0, 0.999999])) == [1, 1]


def test_win_rates_forget() -> None:
    """The mean of the first games, then a moving one: at 0.75 after four, 0.75 (1 - 1/100)^n later."""
    pool = filled("uniform", 0.5)
    pool.members[0].games = 0
    for result in (1.0, 0.5, 0.5, 1.0):
        pool.record(0, result)
    assert (pool.members[0].games, pool.members[0].win_rate) == (4, pytest.approx(0.75))
    pool.members[0].games = MEMORY
    for _ in range(50):
        pool.record(0, 0.0)
    assert pool.members[0].win_rate == pytest.approx(0.75 * 0.99**50)


def test_metrics() -> None:
    pool = filled("uniform", 0.6, 0.4, 0.5)
    logged = pool.metrics([[1.0, 0.0, 0.0, 0.0], [], [0.5, 1.0]])
    assert (logged["size"], logged["newest"], logged["hardest"]) == (3, 2, 1)
    assert (logged["steps"], logged["games"], logged["win_rates"]) == ([0, 1, 2], [4, 0, 2], [0.6, 0.4, 0.5])
    assert np.array_equal(logged["scores"], [0.25, np.nan, 0.75], equal_nan=True)


def test_an_unknown_rule_is_named() -> None:
    with pytest.raises(TaskGymError, match=r"'newst'.*newest"):
        Pool(pick="newst")
