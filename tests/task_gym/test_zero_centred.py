"""ZeroCentredReward: 2s - 1 if the episode terminates, else what was paid."""

from __future__ import annotations

from typing import Any

import pytest

from task_gym.wrappers import ZeroCentredReward
from tests.task_gym.scripts import Script, turn


def last(reward: float, terminated: bool, **info: Any) -> float:
    """The wrapper's reward of a step."""
    env = ZeroCentredReward(Script(turn("a"), ("b", reward, terminated, not terminated, info)))
    env.reset()
    *_, paid, _, _, _ = env.step(0)
    assert isinstance(paid, float)
    return paid


@pytest.mark.parametrize(("score", "paid"), [(1.0, 1.0), (0.75, 0.5), (0.5, 0.0), (0.25, -0.5), (0.0, -1.0)])
def test_scores_are_centred(score: float, paid: float) -> None:
    assert last(score, True, score=score) == paid


def test_a_forfeit_keeps_its_cost() -> None:
    # Score 0 is worth -1, and the illegal action that ended it costs 0.01 as before.
    assert last(-0.01, True, score=0.0) == pytest.approx(-1.01)


def test_other_steps_pay_what_they_paid() -> None:
    env = ZeroCentredReward(Script(turn("a"), turn("b"), turn("c", -0.01, error={}), turn("d", 4.0)))
    env.reset()
    assert [env.step(0)[1] for _ in range(3)] == [0.0, -0.01, 4.0]


def test_cuts_and_faults_pay_nothing() -> None:
    assert last(0.0, False, score=0.0, result="cut") == 0
    assert last(0.0, False, score=None, result="fault") == 0


def test_everything_else_is_passed_on() -> None:
    env = ZeroCentredReward(Script(turn("a", seat=1), ("b", 1.0, True, False, {"score": 1.0})))
    text, info = env.reset()
    assert (text, info["seat"]) == ("a", 1)
    text, _, terminated, truncated, info = env.step(0)
    assert (text, terminated, truncated, info["score"]) == ("b", True, False, 1.0)
    assert env.action_masks().tolist() == [True, False] * 5
