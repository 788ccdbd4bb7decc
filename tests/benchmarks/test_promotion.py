"""The simulation of promotions: exact where that is known, and the rule of Stages itself."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.promotion import promotions
from task_gym.samplers import Outcome, Stages


@pytest.mark.parametrize("rule", ["rate", "confidence"])
def test_stages_promotes_at_the_same_episode(rule: str) -> None:
    successes = np.random.default_rng([5, 720]).random((3, 300), dtype=np.float32) < 0.72
    expected = promotions(0.72, rule, runs=3, episodes=300, seed=5)
    for row, after in zip(successes, expected, strict=True):
        sampler = Stages([{"name": "a"}, {"name": "b"}], promote=rule)
        start = sampler.draw()
        events = sampler.record([Outcome(start, "g", float(s), bool(s), "win" if s else "loss") for s in row])
        assert [event["episodes"] for event in events] == ([after] if after <= 300 else [])
