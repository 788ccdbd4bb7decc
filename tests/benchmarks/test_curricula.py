"""The comparison of curricula: its configurations, and its means and differences."""

from __future__ import annotations

import pytest

from benchmarks.curricula import GAMES, SAMPLERS, configured, summary
from gamespiel.environments.curriculum import make_starts


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_all_draw_the_same_games(sampler: str) -> None:
    config = configured(sampler, 3)
    starts = make_starts(config)
    assert starts is not None and config.run.seed == 3
    drawn = {start.task_id for start in starts.draw(0, range(60))}
    assert drawn == ({GAMES["leduc_poker"]} if sampler == "stages" else set(GAMES.values()))


def test_differences_are_seed_by_seed() -> None:
    """0.5 and 0.7 against 0.6 and 0.6: a mean difference of 0, deviation 0.1 √2, error 0.1, 1.96 × 0.1."""
    scores = {"uniform": (0.6, 0.6), "stages": (0.5, 0.7)}
    rows = [
        {"sampler": name, "seed": seed, "score": score}
        for name, own in scores.items()
        for seed, score in enumerate(own)
    ]
    found = summary(rows)
    # Two equal scores say nothing about how they vary.
    assert found["uniform"] == {"score": [0.6, None, None], "against_uniform": None}
    assert found["stages"]["against_uniform"] == pytest.approx([0, -0.196, 0.196], abs=1e-4)
    assert summary(rows[:1])["uniform"]["score"] == [0.6, None, None]
