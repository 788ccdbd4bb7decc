"""The comparison of curricula: its configurations, and its means and differences."""

from __future__ import annotations

import pytest

from benchmarks.curricula import GAMES, SAMPLERS, configured
from gamespiel.environments.curriculum import make_starts


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_all_draw_the_same_games(sampler: str) -> None:
    config = configured(sampler, 3)
    starts = make_starts(config)
    assert starts is not None and config.run.seed == 3
    drawn = {start.task_id for start in starts.draw(0, range(60))}
    assert drawn == ({GAMES["leduc_poker"]} if sampler == "stages" else set(GAMES.values()))
