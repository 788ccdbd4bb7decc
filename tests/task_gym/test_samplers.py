"""Samplers without stages: who is drawn how often, who enters and leaves, and exact continuation."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from task_gym.errors import ArgumentError, SamplerError
from task_gym.samplers import (
    Failures,
    Outcome,
    Stage,
    Stages,
    Start,
    Uniform,
    Unlisting,
)
from tests.task_gym.tasks import outcome

THREE = [{"name": "a", "task_ids": [1]}, {"name": "b", "task_ids": [2]}, {"name": "c", "task_ids": [3]}]


def make_stages(promote: str) -> Stages:
    easy = [{**stage, "threshold": 0.3} for stage in THREE]  # so that stages change often
    return Stages(easy, seed=7, progression_window=10, promote=promote, earlier_share=0.2, demote=0.2)


SAMPLERS: dict[str, Callable[[], Any]] = {
    "failures": lambda: Failures(5, 0.5, 3, seed=2),
    "uniform": lambda: Uniform(THREE, seed=3),
    "rate": lambda: make_stages("rate"),
    "confidence": lambda: make_stages("confidence"),
}
SCORES = st.lists(st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0]), max_size=60)


def play_on(sampler: Any, scores: Sequence[float]) -> list[Any]:
    """Plays an episode per score; returns what was drawn and what happened."""
    seen = []
    for number, score in enumerate(scores):
        start = sampler.draw()
        played = Start(7, None, number % 13) if start.seed is None else start
        seen.append((start, sampler.record([outcome(played, score)])))
    return seen


@pytest.mark.parametrize("name", SAMPLERS)
@settings(max_examples=25)
@given(before=SCORES, after=SCORES)
def test_a_loaded_state_continues_exactly(name: str, before: list[float], after: list[float]) -> None:
    sampler, twin = SAMPLERS[name](), SAMPLERS[name]()
    play_on(sampler, before)
    state = sampler.state_dict()
    text = json.dumps(state)
    twin.load_state_dict(json.loads(text))
    assert twin.state_dict() == state and twin.stats() == sampler.stats()
    assert play_on(twin, after) == play_on(sampler, after)
    assert twin.state_dict() == sampler.state_dict() and json.dumps(state) == text  # it is nobody's


# -- Failures: who enters, who leaves, who is drawn how often ----------------------------------------------


def fresh(seed: int, score: float | None, result: str = "loss") -> Outcome:
    return outcome(Start(7, "random", seed), score, result=result)


def replay(sampler: Failures, seed: int, *scores: float) -> None:
    for score in scores:
        sampler.record([outcome(Start(7, "random", seed, replayed=True), score)])


def list_failures(sampler: Failures) -> dict[int, float]:
    """The stored starts' scores by seed, the oldest first."""
    return {failure["seed"]: failure["score"] for failure in sampler.state_dict()["kept"]}


def test_failures_enter_and_successes_and_faults_do_not() -> None:
    sampler = Failures()
    sampler.record(
        [fresh(1, 0.0), fresh(2, 0.5), fresh(3, 0.6), fresh(4, None, "fault"), fresh(5, 0.0, "cut")]
    )
    assert list_failures(sampler) == {1: 0.0, 2: 0.5, 5: 0.0}
    assert sampler.stats() == {
        "size": 3, "share": 0.0, "mean_priority": pytest.approx(2.5 / 3), "episodes": 4, "replays": 0,
        "stored": 3, "mastered": 0, "given_up": 0, "pushed_out": 0,
    }  # fmt: skip


def test_the_score_is_the_mean_of_old_and_new() -> None:
    sampler = Failures()
    sampler.record([fresh(1, 0.0)])
    replay(sampler, 1, 1.0)
    assert list_failures(sampler) == {1: 0.5}
    replay(sampler, 1, 0.0)
    assert list_failures(sampler) == {1: 0.25}
    # A fresh episode from the same start says as much, and is no replay.
    sampler.record([fresh(1, 0.75)])
    assert list_failures(sampler) == {1: 0.5}
    assert sampler.stats()["replays"] == 2 and sampler.stats()["share"] == 0.5


def test_a_start_leaves_after_a_number_of_replays() -> None:
    sampler = Failures(max_replays=3)
    sampler.record([fresh(1, 0.0)])
    replay(sampler, 1, 0.0, 0.0)
    assert set(list_failures(sampler)) == {1}
    replay(sampler, 1, 0.0)
    assert list_failures(sampler) == {} and sampler.stats()["given_up"] == 1
    # Another worker's replay of it comes too late, and does not bring it back.
    replay(sampler, 1, 0.0)
    assert list_failures(sampler) == {}
    unlimited = Failures(max_replays=None)
    unlimited.record([fresh(1, 0.0)])
    replay(unlimited, 1, *[0.0] * 50)
    assert set(list_failures(unlimited)) == {1}


def test_the_oldest_leaves_a_full_store() -> None:
    sampler = Failures(failure_buffer_size=2)
    sampler.record([fresh(1, 0.0), fresh(2, 0.0)])
    replay(sampler, 1, 0.0)  # makes it no younger
    sampler.record([fresh(3, 0.0)])
    assert list(list_failures(sampler)) == [2, 3] and sampler.stats()["pushed_out"] == 1


def test_draws_by_priority() -> None:
    sampler = Failures(failure_replay_prob=0.3, seed=11)
    scores = {1: 0.0, 2: 0.5, 3: 0.25, 4: 0.4}
    sampler.record([fresh(seed, score) for seed, score in scores.items()])
    starts = [sampler.draw() for _ in range(5000)]
    counts = Counter(start.seed for start in starts if start.replayed)
    assert {(start.task_id, start.opponent) for start in starts if start.replayed} == {(7, "random")}
    # 1,500 replays expected, ± 4 standard deviations of √(5000 · 0.3 · 0.7) = 32.4.
    total = counts.total()
    assert abs(total - 1500) < 130
    # Priorities 1, 0.5, 0.75 and 0.6 of 2.85. Chi-square, 3 degrees of freedom: above 16.3 with p = 0.001.
    expected = {seed: total * (1 - score) / 2.85 for seed, score in scores.items()}
    assert sum((counts[seed] - n) ** 2 / n for seed, n in expected.items()) < 16.3


# -- the others --------------------------------------------------------------------------------------------


def test_uniform_draws_groups_and_not_ids() -> None:
    sampler = Uniform([Stage("one", task_ids=[7]), Stage("many", task_id_range=[100, 999], opponent="first")])
    starts = [sampler.draw() for _ in range(2000)]
    # 1,000 expected; √(2000 / 4) = 22.4.
    assert abs(sum(start.task_id == 7 for start in starts) - 1000) < 90
    assert all((start.opponent == "first") == (start.task_id != 7) for start in starts)
    assert sampler.task_ids == [(7, 7), (100, 999)]
    assert sampler.stats() == {"episodes": 0}


def test_the_share_falls_linearly() -> None:
    plan = Unlisting(2, 6)
    # (6 - step) / 4, within 0 and 1.
    assert [plan.share(step) for step in range(8)] == [1, 1, 1, 0.75, 0.5, 0.25, 0, 0]
    assert plan.draw(2, 50) == [True] * 50 and plan.draw(6, 50) == [False] * 50
    for steps in ((3, 3), (4, 2), (-1, 2), (0, 1.5)):
        with pytest.raises(ArgumentError, match="Unlisting: steps"):
            Unlisting(*steps)


def test_draws_follow_from_the_address() -> None:
    plan = Unlisting(0, 10, seed=3)
    drawn = plan.draw(4, 4000)
    assert drawn == Unlisting(0, 10, seed=3).draw(4, 4000) and drawn[:40] == plan.draw(4, 40)
    assert drawn != plan.draw(5, 4000) and drawn != Unlisting(0, 10, seed=4).draw(4, 4000)
    # 0.6 of 4,000: the standard deviation of the count is 31, so 4 of them are 124.
    assert abs(sum(drawn) - 2400) < 124


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        (Failures, {"failure_buffer_size": 0}, r"failure_buffer_size: 0 was given"),
        (
            Failures,
            {"failure_replay_prob": 1.5},
            r"failure_replay_prob: 1.5 was given, allowed: numbers from 0 to 1",
        ),
        (Failures, {"success_scores": {3: True}}, r"success_scores: 3: True was given"),
        (Uniform, {"groups": []}, r"groups: none was given"),
        (Uniform, {"groups": [Stage("a", threshold=0.5)]}, r"group 'a': threshold or min_episodes was given"),
    ],
)
def test_arguments_outside_what_is_allowed(kind: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        kind(**arguments) if kind is Failures else kind(**{"groups": THREE, **arguments})


def test_a_state_that_does_not_fit() -> None:
    sampler = Failures()
    sampler.record([fresh(5, 0.0), fresh(6, 0.5)])
    with pytest.raises(SamplerError, match=r"2 failures were given, allowed: at most 1"):
        Failures(1).load_state_dict(sampler.state_dict())


def test_samplers_with_one_seed_draw_different_numbers() -> None:
    purposes = {type(make()).purpose for make in SAMPLERS.values()}
    assert len(purposes) == 3  # two are Stages
