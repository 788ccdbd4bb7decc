"""The loops play the same, and the report is the measurement. Nothing here asks how long it took."""

from __future__ import annotations

import pytest

from benchmarks import env_speed
from benchmarks.env_speed import Round, check_same, contenders, find_variant, overview, summary
from benchmarks.loops import UniformAgent
from game_gym.games import TABLE
from tests.gamespiel.runs import mark_samples


@pytest.mark.parametrize("name", mark_samples(TABLE, ("leduc_poker", "othello", "goofspiel", "liars_dice")))
def test_the_bare_loop_shows_what_the_environment_shows(name: str) -> None:
    assert check_same(name, 1) > 0


@pytest.mark.parametrize("key", [*env_speed.SAME_GAMES, "rl_environment"])
def test_every_contender_counts_the_decisions_of_one_seat(key: str) -> None:
    """Eight cards each, the last of which plays itself: seven decisions a game."""
    assert find_variant("goofspiel").params["num_cards"] == 8
    assert contenders("goofspiel")[key](3, 5, UniformAgent(0)) == 35


def test_ratios_are_medians_over_rounds() -> None:
    """`raw` takes 2, 2 and 8 times as long as `bare`; a tenth of its decisions are the other's."""
    taken = {
        "bare": [Round(100, 1.0, 2.0), Round(100, 2.0, 2.0), Round(100, 1.0, 4.0)],
        "raw": [Round(100, 2.0, 4.0), Round(100, 4.0, 4.0), Round(100, 8.0, 8.0)],
        "gym_make": [Round(100, 4.0, 4.0)] * 3,
        "reseeded": [Round(100, 1.0, 1.0)] * 3,
        "other": [Round(10, 2.0, 2.0), Round(10, 4.0, 4.0), Round(10, 8.0, 8.0)],
    }
    one = summary(taken)
    assert one["decisions"] == {"bare": 300, "raw": 300, "gym_make": 300, "reseeded": 300, "other": 30}
    # 100, 50 and 100; 50, 25 and 12.5; ...
    assert one["per_cpu_second"] == {"bare": 100, "raw": 25, "gym_make": 25, "reseeded": 100, "other": 2.5}
    assert one["per_second"] == {"bare": 50, "raw": 25, "gym_make": 25, "reseeded": 100, "other": 2.5}
    # raw: 0.5, 0.5, 0.125; gym_make: 0.25, 0.5, 0.25; reseeded: 1, 2, 1.
    assert one["over_bare"] == {"raw": 0.5, "gym_make": 0.25, "reseeded": 1.0}
    assert one["raw_over"] == {"other": 10.0}
    games = {"a": one, "b": {"over_bare": {"raw": 0.7}, "raw_over": {}}}
    assert overview(games)["raw"] == {"least": 0.5, "median": 0.6}
    assert overview(games)["other"] == {"least": 10.0, "median": 10.0}
