"""Stages: promotion and demotion by hand, what counts, draws by address, and exact continuation."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

import pytest

from task_gym.errors import ArgumentError, SamplerError
from task_gym.ids import IdRanges
from task_gym.samplers import Outcome, Stage, Stages, Start
from tests.task_gym.tasks import outcome

THREE = [
    {"name": "easy", "task_id_range": [0, 9], "opponent": "random", "threshold": 0.5},
    {"name": "medium", "task_id_range": [10, 19], "opponent": "random"},
    {"name": "hard", "task_ids": [20, (25, 27)], "opponent": "mcts"},
]


def play(sampler: Stages, *scores: float, game: str = "g") -> list[dict[str, Any]]:
    """Episodes one after the other, each recorded before the next is drawn."""
    return [event for score in scores for event in sampler.record([outcome(sampler.draw(), score, game)])]


def stages(window: int = 4, **arguments: Any) -> Stages:
    return Stages(THREE, progression_window=window, **arguments)


def test_a_rate_promotes_when_the_window_is_full(caplog: pytest.LogCaptureFixture) -> None:
    sampler = stages()
    assert play(sampler, 1, 1, 1) == []
    assert sampler.stats()["stage"] == 0
    # 3 of 4 is at least 0.5.
    with caplog.at_level(logging.INFO, "task_gym"):
        (event,) = play(sampler, 0)
    assert caplog.messages == ["promoted from 'easy' to 'medium' after 4 episodes at a success rate of 0.75"]
    assert event == {
        "event": "promoted", "from": "easy", "to": "medium", "success_rate": 0.75, "stage_episodes": 4,
        "episodes": 4,
    }  # fmt: skip
    assert sampler.events == [event]
    # 1 of 4; the success leaves: 1 of the last 4; then 2 of the last 4, which is 0.5 and enough.
    sampler = stages()
    assert play(sampler, 1, 0, 0, 0, 1) == []
    assert len(play(sampler, 1)) == 1


def test_results_are_cleared_and_a_stage_without_threshold_has_seventy_percent() -> None:
    sampler = stages(window=10)
    assert len(play(sampler, *[1] * 10)) == 1
    assert sampler.stats() == {
        "stage": 1, "name": "medium", "progress": 0.0, "success_rate": 0.0, "stage_episodes": 0,
        "episodes": 10, "changes": 1,
    }  # fmt: skip
    assert play(sampler, *[0] * 4, *[1] * 6) == []  # 0.6
    # The first failure leaves: 0.7.
    assert [event["to"] for event in play(sampler, 1)] == ["hard"]
    assert play(sampler, *[1] * 30) == [] and sampler.stats()["progress"] == 1.0


def test_a_least_number_of_episodes() -> None:
    early = Stages([Stage("a", threshold=0.9, min_episodes=2), Stage("b")], progression_window=10)
    assert play(early, 1) == [] and len(play(early, 1)) == 1
    late = Stages([Stage("a", threshold=0.9, min_episodes=15), Stage("b")], progression_window=10)
    assert play(late, *[1] * 14) == [] and len(play(late, 1)) == 1


def test_confidence_takes_79_of_100() -> None:
    # Wilson's lower end is 0.6893 at 78 of 100, and 0.7002 at 79 (tests/benchmarks/test_promotion.py).
    sampler = Stages([Stage("a"), Stage("b")], promote="confidence")
    assert play(sampler, *[0] * 22, *[1] * 78) == []
    assert sampler.stats()["progress"] == pytest.approx(0.6893 / 0.7, abs=1e-4)
    assert len(play(sampler, 1)) == 1


def test_progress_is_the_slower_of_rate_and_episodes() -> None:
    sampler = stages(window=10)
    play(sampler, 1, 1)
    assert sampler.stats()["progress"] == 0.2  # 2 of 10 episodes
    play(sampler, *[0] * 8)
    assert sampler.stats()["progress"] == 0.4  # 0.2 of 0.5


def test_demotion() -> None:
    sampler = stages(demote=0.25)
    play(sampler, *[1] * 4)
    assert play(sampler, 0, 0, 0) == []  # no full window yet
    assert play(sampler, 1) == []  # 0.25 is not below
    (event,) = play(sampler, 0, 0, 0, 0)  # 1 0 0 0, then 0 0 0 0: demoted at the fourth
    assert (event["event"], event["to"], event["success_rate"]) == ("demoted", "easy", 0)
    assert play(sampler, 0, 0, 0, 0, 0) == []  # nothing is below the first
    # With confidence the upper end counts: 0.2775 for 0 of 10 is not below 0.25; 0.2425 for 0 of 12 is.
    for window, changes in ((10, 1), (12, 2)):
        sure = stages(window, promote="confidence", demote=0.25)
        play(sure, *[1] * window, *[0] * window)
        assert sure.stats()["changes"] == changes


def test_faults_replays_and_episodes_of_another_stage_leave_the_rate() -> None:
    sampler = stages()
    before = sampler.draw()
    fault = Outcome(sampler.draw(), "g", None, False, "fault")
    replay = Outcome(Start(3, "random", 7, replayed=True, note=before.note), "g", 0.0, False, "loss")
    assert sampler.record([fault, replay]) == []
    assert sampler.stats()["episodes"] == sampler.stats()["stage_episodes"] == 0
    assert sampler.record([Outcome(before, "g", 0.0, False, "cut")]) == []
    assert sampler.stats()["stage_episodes"] == 1  # a cut is a failure
    assert len(play(sampler, 1, 1, 1)) == 1
    # Drawn before the promotion, ended after it.
    assert sampler.record([outcome(before, 1)]) == []
    assert (sampler.stats()["stage_episodes"], sampler.stats()["episodes"]) == (0, 5)
    # Nor after a demotion to the same stage.
    sampler = stages(demote=0.25)
    play(sampler, *[1] * 4, *[0] * 4)
    sampler.record([outcome(before, 1)])
    assert (sampler.stats()["stage"], sampler.stats()["stage_episodes"]) == (0, 0)


def test_a_success_score_of_its_own() -> None:
    sampler = stages(success_scores={"2048": 0.3, 12: 0.9})
    play(sampler, 0.3, 0.31, game="2048")
    assert sampler.stats()["success_rate"] == 0.5  # above 0.3, as it is above 0.5 elsewhere
    play(sampler, 0.31)
    assert sampler.stats()["success_rate"] == pytest.approx(1 / 3)
    # The task's own score comes before its game's: a third failure, 1 of 4 in all.
    sampler.record([Outcome(Start(12, note=sampler.draw().note), "2048", 0.8, True, "win")])
    assert sampler.stats()["success_rate"] == 0.25


def test_draws_are_within_the_stage_and_uniform() -> None:
    sampler = stages()
    starts = [sampler.draw() for _ in range(2000)]
    assert {start.opponent for start in starts} == {"random"}
    counts = Counter(start.task_id for start in starts)
    assert sorted(counts) == list(range(10))
    # Chi-square, 9 degrees of freedom: above 27.9 with probability 0.001.
    assert sum((counts[i] - 200) ** 2 / 200 for i in range(10)) < 27.9
    assert len({start.seed for start in starts}) == 2000
    play(sampler, *[1] * 8)
    assert {sampler.draw().task_id for _ in range(100)} == {20, 25, 26, 27}
    start = sampler.draw()
    assert start.options == {"task_id": start.task_id, "opponent": "mcts"}


def test_a_share_of_earlier_stages_that_does_not_count() -> None:
    sampler = stages(earlier_share=0.4)
    play(sampler, *[1] * 4)
    while sampler.stats()["stage"] < 2:
        sampler.record([outcome(sampler.draw(), 1)])
    counts = Counter(sampler.draw().note[0] for _ in range(3000))
    # 600, 600 and 1800 expected; chi-square with 2 degrees of freedom above 13.8 with probability 0.001.
    expected = {0: 600, 1: 600, 2: 1800}
    assert sum((counts[stage] - n) ** 2 / n for stage, n in expected.items()) < 13.8
    earlier = next(start for start in iter(sampler.draw, None) if start.note[0] == 0)
    assert 0 <= earlier.task_id <= 9 and earlier.opponent == "random"  # type: ignore[operator]
    sampler.record([outcome(earlier, 0)])
    assert sampler.stats()["stage_episodes"] == 0


def test_draws_follow_from_seed_address_and_state() -> None:
    sampler, twin = stages(seed=3), stages(seed=3)
    addresses = [(0, 0), (0, 1), (1, 0), (1,), (0,), ()]
    drawn = [sampler.draw(address) for address in addresses]
    assert [twin.draw(address) for address in reversed(addresses)] == drawn[::-1]
    assert len({start.seed for start in drawn}) == len(drawn)
    assert stages(seed=4).draw((0, 0)) != drawn[0]


def test_ranges_for_the_environment() -> None:
    assert stages().task_ids == [(0, 9), (10, 19), (20, 20), (25, 27)]
    levels = IdRanges([(0, 99)], 2**62, modulus=10, residues=[3])
    sampler = Stages([Stage("a", task_ids=levels)])
    assert {sampler.draw().task_id for _ in range(200)} == set(range(3, 100, 10))
    assert Stages([Stage("a")]).draw().options == {}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "failures"}, r"state: kind 'failures' was given, allowed: this sampler's, 'stages'"),
        ({"names": ["a"]}, r"state: names \['a'\] was given"),
        ({"results": [1] * 5}, r"5 results were given, allowed: at most 4"),
        ({"more": 1}, r"state: \['draws'.*'more'"),
    ],
)
def test_the_state_of_another_sampler_is_refused(change: dict[str, Any], message: str) -> None:
    sampler = stages()
    with pytest.raises(SamplerError, match=message):
        sampler.load_state_dict({**sampler.state_dict(), **change})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"stages": []}, r"stages: none was given"),
        ({"stages": ["easy"]}, r"stages: 'easy' was given, allowed: Stage"),
        ({"stages": [Stage("a", task_id_range=5)]}, r"task_id_range: 5 was given, allowed: \(first, last\)"),
        ({"stages": [Stage("a", task_ids="12")]}, r"stage 'a': task_ids: '12' was given, allowed: a list"),
        ({"stages": [{"name": "a", "treshold": 1}]}, r"stage: 'treshold' was given.*'threshold'\?"),
        ({"stages": [{"opponent": "random"}]}, r"allowed: a stage with a name"),
        ({"stages": [Stage("a", [0, 1], [2])]}, r"stage 'a': task_id_range and task_ids were given"),
        ({"stages": [Stage("a", threshold=1.5)]}, r"stage 'a': threshold: 1.5 was given"),
        ({"stages": [Stage("a", threshold=0), Stage("b")]}, r"threshold 0.0 was given, allowed: .* above 0"),
        ({"promote": "luck"}, r"promote: 'luck' was given, allowed: 'rate', 'confidence'"),
        ({"progression_window": 0}, r"progression_window: 0 was given"),
        ({"demote": 0.5}, r"demote: 0.5 was given, allowed: numbers below the lowest threshold, 0.5"),
        ({"success_scores": {"2048": 1.0}}, r"success_scores: '2048': 1.0 was given, allowed: .* below 1"),
    ],
)
def test_arguments_outside_what_is_allowed(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Stages(**{"stages": THREE, **arguments})


def test_a_threshold_that_confidence_cannot_reach() -> None:
    # The lower end for 100 of 100 is 1 / (1 + 1.96² / 100) = 0.9630.
    with pytest.raises(ArgumentError, match=r"threshold 0.97 was given, allowed: .* 0.963, the lower end"):
        Stages([Stage("a", threshold=0.97), Stage("b")], promote="confidence")
    Stages([Stage("a", threshold=0.97), Stage("b")])
