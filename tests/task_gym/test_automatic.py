"""Samplers without stages: probabilities by hand, draws by them, and exact continuation."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from task_gym.errors import ArgumentError, SamplerError
from task_gym.samplers import (
    Failures,
    LearningProgress,
    Outcome,
    PrioritizedLevelReplay,
    Stage,
    Start,
    Uniform,
)
from task_gym.wrappers import Curriculum, FailureReplay
from tests.task_gym.tasks import Tenths, play

THREE = [{"name": "a", "task_ids": [1]}, {"name": "b", "task_ids": [2]}, {"name": "c", "task_ids": [3]}]
ALL = [Uniform, LearningProgress, PrioritizedLevelReplay]


def outcome(start: Start, score: float) -> Outcome:
    return Outcome(start, "g", score, score > 0.5, "win" if score > 0.5 else "loss")


def level(seed: int, score: float, note: int = 0) -> Outcome:
    return outcome(Start(1, None, seed, note=(note,)), score)


def test_uniform_draws_groups_and_not_ids() -> None:
    sampler = Uniform([Stage("one", task_ids=[7]), Stage("many", task_id_range=[100, 999], opponent="first")])
    starts = [sampler.draw() for _ in range(2000)]
    # 1,000 expected; √(2000 / 4) = 22.4.
    assert abs(sum(start.task_id == 7 for start in starts) - 1000) < 90
    assert all((start.opponent == "first") == (start.task_id != 7) for start in starts)
    assert sampler.task_ids == [(7, 7), (100, 999)]
    assert sampler.stats() == {"episodes": 0, "probabilities": {"one": 0.5, "many": 0.5}}


def test_learning_progress_by_hand() -> None:
    sampler = LearningProgress(THREE, fast=0.5, slow=0.25, explore=0.4)
    for score in (0.0, 1.0):  # group a: a failure, then a success
        sampler.record([outcome(Start(1, note=(0,)), score)])
    # Fast: 0.5 / (1 - 0.5²) = 2/3. Slow: 0.25 / (1 - 0.75²) = 4/7. b and c have no progress.
    assert sampler.progress() == pytest.approx([2 / 3 - 4 / 7, 0, 0])
    assert sampler.probabilities() == pytest.approx([0.4 / 3 + 0.6, 0.4 / 3, 0.4 / 3])
    # A group that is always won, or always lost, has none: both averages are 1, or 0.
    for score, group in ((1.0, 1), (0.0, 2)):
        for _ in range(5):
            sampler.record([outcome(Start(2, note=(group,)), score)])
    assert sampler.progress()[1:] == pytest.approx([0, 0])
    # Falling counts as rising does: a success, then a failure. Fast 1/3, slow 3/7.
    falling = LearningProgress(THREE, fast=0.5, slow=0.25)
    for score in (1.0, 0.0):
        falling.record([outcome(Start(1, note=(0,)), score)])
    assert falling.progress()[0] == pytest.approx(3 / 7 - 1 / 3)


def test_learning_progress_starts_even_and_draws_by_its_probabilities() -> None:
    sampler = LearningProgress(THREE, fast=0.5, slow=0.25, explore=0.4)
    assert sampler.probabilities() == pytest.approx([1 / 3] * 3)
    sampler.record([outcome(Start(1, note=(0,)), score) for score in (0.0, 1.0)])
    counts = Counter(sampler.draw().task_id for _ in range(3000))
    # 2200, 400, 400 expected; chi-square with 2 degrees of freedom above 13.8 with p = 0.001.
    assert sum((counts[i] - n) ** 2 / n for i, n in ((1, 2200), (2, 400), (3, 400))) < 13.8


def test_level_replay_by_hand() -> None:
    sampler = PrioritizedLevelReplay(THREE, levels=10, temperature=0.5, staleness=0.2)
    sampler.record([level(5, 1.0), level(6, 0.5), level(7, 0.0), level(7, 0.0), level(8, 0.7)])
    # m: 5: (1 + 0.5) / 2 = 0.75, so 0.5. 6: 0.5, so 1. 7: 0.5 / 3, so 1/3. 8: 0.6, so 0.8.
    # Ranks 3, 1, 4, 2; powers of 1 / 0.5: 1/9, 1, 1/16, 1/4. Ages of 5 episodes: 4, 3, 1, 0.
    weights = np.array([1 / 9, 1, 1 / 16, 1 / 4])
    expected = 0.8 * weights / weights.sum() + 0.2 * np.array([4, 3, 1, 0]) / 8
    assert sampler.probabilities() == pytest.approx(expected)


def test_level_replay_draws_the_stored() -> None:
    sampler = PrioritizedLevelReplay(THREE, levels=4, replay=0.5, temperature=0.5, staleness=0.2)
    sampler.record([level(5, 1.0), level(6, 0.5), level(7, 0.0), level(8, 0.7)])
    drawn = [sampler.draw() for _ in range(4000)]
    stored = Counter(start.seed for start in drawn if start.note == (1,))
    # The store is full: half of the draws. √(4000 / 4) = 31.6.
    assert abs(stored.total() - 2000) < 127
    expected = stored.total() * sampler.probabilities()
    # 3 degrees of freedom: above 16.3 with p = 0.001.
    assert sum((stored[seed] - n) ** 2 / n for seed, n in zip((5, 6, 7, 8), expected, strict=True)) < 16.3
    half = PrioritizedLevelReplay(THREE, levels=8, replay=0.5)
    half.record([level(5, 1.0), level(6, 0.5), level(7, 0.0), level(8, 0.7)])
    # Half full: a quarter of the draws.
    assert abs(sum(half.draw().note == (1,) for _ in range(4000)) - 1000) < 110


def test_level_replay_keeps_the_highest_scores() -> None:
    sampler = PrioritizedLevelReplay(THREE, levels=2)
    sampler.record([level(5, 0.5), level(6, 1.0), level(7, 0.4), level(8, 0.0)])
    # 1, 0.5, 0.9, 0.5: the third pushes out the second, and the fourth finds no place.
    assert [entry[2] for entry in sampler.state_dict()["levels"]] == [5, 7]
    assert sampler.stats() == {"episodes": 4, "levels": 2, "share": 0.0}


SCORES = st.lists(st.sampled_from([0.0, 0.4, 0.6, 1.0]), max_size=40)


@pytest.mark.parametrize("kind", ALL)
@given(before=SCORES, after=SCORES)
def test_a_loaded_state_continues_exactly(kind: Any, before: list[float], after: list[float]) -> None:
    more = {"levels": 5} if kind is PrioritizedLevelReplay else {}
    sampler, twin = (kind(THREE, seed=3, **more) for _ in range(2))
    for score in before:
        sampler.record([outcome(sampler.draw(), score)])
    twin.load_state_dict(json.loads(json.dumps(sampler.state_dict())))
    for score in after:
        start = sampler.draw()
        assert twin.draw() == start
        for one in (sampler, twin):
            one.record([outcome(start, score)])
    assert twin.state_dict() == sampler.state_dict() and twin.stats() == sampler.stats()


@pytest.mark.parametrize("kind", ALL)
def test_behind_the_wrappers(kind: Any) -> None:
    sampler = kind(THREE)
    env = FailureReplay(Curriculum(Tenths(), sampler), Failures())
    infos = [play(env, action) for action in np.random.default_rng(0).integers(12, size=200)]
    fresh = [info for info in infos if info["result"] != "fault" and not info["replay"]["replayed"]]
    assert sampler.stats()["episodes"] == len(fresh)
    assert {info["task_id"] for info in infos} == {1, 2, 3}


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        (Uniform, {"groups": []}, r"groups: none was given"),
        (Uniform, {"groups": None}, r"groups: None was given, allowed: a list"),
        (Uniform, {"groups": [Stage("a", threshold=0.5)]}, r"group 'a': threshold or min_episodes was given"),
        (LearningProgress, {"fast": 0.1, "slow": 0.2}, r"0.1, 0.2 were given, allowed: 0 < slow < fast < 1"),
        (LearningProgress, {"explore": -1}, r"explore: -1 was given"),
        (PrioritizedLevelReplay, {"temperature": 0}, r"temperature: 0 was given, allowed: numbers above 0"),
        (PrioritizedLevelReplay, {"levels": 0}, r"levels: 0 was given"),
    ],
)
def test_arguments_outside_what_is_allowed(kind: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        kind(**{"groups": THREE, **arguments})


def test_a_state_that_does_not_fit() -> None:
    sampler = PrioritizedLevelReplay(THREE)
    sampler.record([level(5, 1.0), level(6, 0.5)])
    with pytest.raises(SamplerError, match=r"2 levels were given, allowed: at most 1"):
        PrioritizedLevelReplay(THREE, levels=1).load_state_dict(sampler.state_dict())


def test_samplers_with_one_seed_draw_different_numbers() -> None:
    from task_gym.samplers import Stages

    purposes = [kind.purpose for kind in (*ALL, Failures, Stages)]
    assert len(set(purposes)) == len(purposes)
