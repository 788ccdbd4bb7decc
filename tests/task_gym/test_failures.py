"""Failures: who enters, who leaves, who is drawn how often, and exact continuation."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from task_gym.errors import ArgumentError, SamplerError
from task_gym.samplers import Failures, Outcome, Start


def outcome(start: Start, score: float | None, result: str = "loss") -> Outcome:
    return Outcome(start, "g", score, score is not None and score > 0.5, result)


def fresh(seed: int, score: float | None, result: str = "loss") -> Outcome:
    return outcome(Start(7, "random", seed), score, result)


def replay(sampler: Failures, seed: int, *scores: float) -> None:
    for score in scores:
        sampler.record([outcome(Start(7, "random", seed, replayed=True), score)])


def kept(sampler: Failures) -> dict[int, float]:
    """The stored starts' scores by seed, the oldest first."""
    return {failure["seed"]: failure["score"] for failure in sampler.state_dict()["kept"]}


def test_failures_enter_and_successes_and_faults_do_not() -> None:
    sampler = Failures()
    sampler.record(
        [fresh(1, 0.0), fresh(2, 0.5), fresh(3, 0.6), fresh(4, None, "fault"), fresh(5, 0.0, "cut")]
    )
    assert kept(sampler) == {1: 0.0, 2: 0.5, 5: 0.0}
    assert sampler.stats() == {
        "size": 3, "share": 0.0, "mean_priority": pytest.approx(2.5 / 3), "episodes": 4, "replays": 0,
        "stored": 3, "mastered": 0, "given_up": 0, "pushed_out": 0,
    }  # fmt: skip


def test_nothing_is_replayed_from_an_empty_store() -> None:
    assert {Failures(failure_replay_prob=1).draw((n,)) for n in range(20)} == {Start()}


def test_the_score_is_the_mean_of_old_and_new() -> None:
    sampler = Failures()
    sampler.record([fresh(1, 0.0)])
    replay(sampler, 1, 1.0)
    assert kept(sampler) == {1: 0.5}
    replay(sampler, 1, 0.0)
    assert kept(sampler) == {1: 0.25}
    # A fresh episode from the same start says as much, and is no replay.
    sampler.record([fresh(1, 0.75)])
    assert kept(sampler) == {1: 0.5}
    assert sampler.stats()["replays"] == 2 and sampler.stats()["share"] == 0.5


def test_two_successes_in_a_row_master_a_start() -> None:
    sampler = Failures()
    sampler.record([fresh(1, 0.0), fresh(2, 0.0)])
    replay(sampler, 1, 1.0, 0.0, 1.0)
    assert set(kept(sampler)) == {1, 2}
    replay(sampler, 1, 0.6)
    assert set(kept(sampler)) == {2} and sampler.stats()["mastered"] == 1


def test_a_start_leaves_after_a_number_of_replays() -> None:
    sampler = Failures(max_replays=3)
    sampler.record([fresh(1, 0.0)])
    replay(sampler, 1, 0.0, 0.0)
    assert set(kept(sampler)) == {1}
    replay(sampler, 1, 0.0)
    assert kept(sampler) == {} and sampler.stats()["given_up"] == 1
    # Another worker's replay of it comes too late, and does not bring it back.
    replay(sampler, 1, 0.0)
    assert kept(sampler) == {}
    unlimited = Failures(max_replays=None)
    unlimited.record([fresh(1, 0.0)])
    replay(unlimited, 1, *[0.0] * 50)
    assert set(kept(unlimited)) == {1}


def test_the_oldest_leaves_a_full_store() -> None:
    sampler = Failures(failure_buffer_size=2)
    sampler.record([fresh(1, 0.0), fresh(2, 0.0)])
    replay(sampler, 1, 0.0)  # makes it no younger
    sampler.record([fresh(3, 0.0)])
    assert list(kept(sampler)) == [2, 3] and sampler.stats()["pushed_out"] == 1


def test_a_success_score_of_its_own() -> None:
    sampler = Failures(success_scores={"g": 0.2})
    sampler.record([fresh(1, 0.2), fresh(2, 0.3)])
    assert set(kept(sampler)) == {1}


def test_draws_by_priority() -> None:
    sampler = Failures(failure_replay_prob=0.3, seed=11)
    scores = {1: 0.0, 2: 0.5, 3: 0.25, 4: 0.4}
    sampler.record([fresh(seed, score) for seed, score in scores.items()])
    starts = [sampler.draw() for _ in range(20_000)]
    counts = Counter(start.seed for start in starts if start.replayed)
    assert {(start.task_id, start.opponent) for start in starts if start.replayed} == {(7, "random")}
    # 6,000 replays expected, ± 4 standard deviations of √(20000 · 0.3 · 0.7) = 64.8.
    total = sum(counts.values())
    assert abs(total - 6000) < 260
    # Priorities 1, 0.5, 0.75 and 0.6 of 2.85. Chi-square, 3 degrees of freedom: above 16.3 with p = 0.001.
    expected = {seed: total * (1 - score) / 2.85 for seed, score in scores.items()}
    assert sum((counts[seed] - n) ** 2 / n for seed, n in expected.items()) < 16.3


def test_draws_by_priority_after_replays() -> None:
    sampler = Failures(failure_replay_prob=1.0)
    sampler.record([fresh(1, 0.0), fresh(2, 0.0), fresh(3, 0.5)])
    replay(sampler, 2, 1.0)  # 0.5
    replay(sampler, 3, 1.0)  # 0.75
    counts = Counter(sampler.draw().seed for _ in range(7000))
    # Priorities 1, 0.5 and 0.25 of 1.75: 4000, 2000, 1000. 2 degrees of freedom: above 13.8 with p = 0.001.
    expected = {1: 4000, 2: 2000, 3: 1000}
    assert sum((counts[seed] - n) ** 2 / n for seed, n in expected.items()) < 13.8


EPISODES = st.lists(st.tuples(st.integers(0, 12), st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0])), max_size=60)


def play(sampler: Failures, episodes: Sequence[tuple[int, float]]) -> list[Start]:
    """Fresh episodes of these seeds, or replays, with these scores."""
    starts = []
    for seed, score in episodes:
        start = sampler.draw()
        starts.append(start)
        sampler.record([outcome(start if start.replayed else Start(7, None, seed), score)])
    return starts


@given(before=EPISODES, after=EPISODES)
def test_a_loaded_state_continues_exactly(
    before: list[tuple[int, float]], after: list[tuple[int, float]]
) -> None:
    sampler, twin = (Failures(5, 0.5, 3, seed=2) for _ in range(2))
    play(sampler, before)
    twin.load_state_dict(json.loads(json.dumps(sampler.state_dict())))
    assert play(twin, after) == play(sampler, after)
    assert twin.state_dict() == sampler.state_dict()


@given(episodes=EPISODES)
def test_every_start_that_entered_is_there_or_left_for_one_reason(episodes: list[tuple[int, float]]) -> None:
    sampler = Failures(5, 0.5, 3)
    play(sampler, episodes)
    stats = sampler.stats()
    left = stats["mastered"] + stats["given_up"] + stats["pushed_out"]
    assert stats["stored"] == stats["size"] + left and stats["size"] <= 5
    assert stats["episodes"] == len(episodes)
    assert all(0 <= score < 1 for score in kept(sampler).values())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"failure_buffer_size": 0}, r"failure_buffer_size: 0 was given"),
        ({"failure_replay_prob": 1.5}, r"failure_replay_prob: 1.5 was given, allowed: numbers from 0 to 1"),
        ({"max_replays": 0}, r"max_replays: 0 was given"),
        ({"success_scores": {3: True}}, r"success_scores: 3: True was given"),
    ],
)
def test_arguments_outside_what_is_allowed(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Failures(**arguments)


def test_a_state_that_does_not_fit() -> None:
    sampler = Failures()
    sampler.record([fresh(1, 0.0), fresh(2, 0.0)])
    with pytest.raises(SamplerError, match=r"2 failures were given, allowed: at most 1"):
        Failures(1).load_state_dict(sampler.state_dict())
