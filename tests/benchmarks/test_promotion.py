"""The simulation of promotions: exact where that is known, and the rule of Stages itself."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from benchmarks.promotion import needed, promotions
from task_gym.samplers import Outcome, Stages


def tail(rate: float, count: int) -> float:
    """The probability of at least so many successes in 100."""
    return sum(comb(100, k) * rate**k * (1 - rate) ** (100 - k) for k in range(count, 101))


def test_successes_needed() -> None:
    # Wilson's lower end at 79/100: (0.79 + 0.0192073) / 1.0384146 - 1.96 √(0.1659/100 + 0.000096) / 1.0384146
    # = 0.77927 - 0.07907 = 0.7002; at 78/100 it is 0.6893.
    assert (needed("rate"), needed("confidence")) == (70, 79)


@pytest.mark.parametrize(("rule", "count"), [("rate", 70), ("confidence", 79)])
def test_the_first_window_is_binomial(rule: str, count: int) -> None:
    after = promotions(0.75, rule, runs=4000, episodes=100, seed=1)
    # 4 standard errors of 4,000 runs are below 0.032.
    assert np.mean(after == 100) == pytest.approx(tail(0.75, count), abs=0.032)
    assert set(after) == {100, 101}


@pytest.mark.parametrize("rule", ["rate", "confidence"])
def test_stages_promotes_at_the_same_episode(rule: str) -> None:
    successes = np.random.default_rng([5, 720]).random((3, 300), dtype=np.float32) < 0.72
    expected = promotions(0.72, rule, runs=3, episodes=300, seed=5)
    for row, after in zip(successes, expected, strict=True):
        sampler = Stages([{"name": "a"}, {"name": "b"}], promote=rule)
        start = sampler.draw()
        events = sampler.record([Outcome(start, "g", float(s), bool(s), "win" if s else "loss") for s in row])
        assert [event["episodes"] for event in events] == ([after] if after <= 300 else [])
