"""The simulation of promotions has the rule of Stages, and compared curricula draw the same games."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.curricula import GAMES, SAMPLERS, configured
from benchmarks.promotion import promotions
from gamespiel.environments.curriculum import make_starts
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


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_all_draw_the_same_games(sampler: str) -> None:
    config = configured(sampler, 3)
    starts = make_starts(config)
    assert starts is not None and config.run.seed == 3
    drawn = {start.task_id for start in starts.draw(0, range(60))}
    assert drawn == ({GAMES["leduc_poker"]} if sampler == "stages" else set(GAMES.values()))
