"""FailureReplay: what is replayed, what is reported, and how it composes with Curriculum."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from task_gym.errors import SamplerError
from task_gym.samplers import Failures, Stages
from task_gym.wrappers import Curriculum, FailureReplay
from tests.task_gym.tasks import Tenths, play

ONE = [{"name": "only", "task_id_range": [0, 999], "opponent": "first"}]


def always(**arguments: Any) -> tuple[FailureReplay, Tenths, Failures]:
    env, sampler = Tenths(), Failures(failure_replay_prob=1.0, **arguments)
    return FailureReplay(env, sampler), env, sampler


def test_a_failed_start_is_played_again_until_it_is_mastered() -> None:
    env, inner, _ = always()
    first = play(env, 0)
    assert not first["replay"]["replayed"] and first["replay"]["size"] == 1
    assert play(env, 10)["replay"] == {
        "replayed": True, "size": 1, "share": 0.5, "mean_priority": 0.5, "episodes": 2, "replays": 1,
        "stored": 1, "mastered": 0, "given_up": 0, "pushed_out": 0,
    }  # fmt: skip
    assert play(env, 10)["replay"]["mastered"] == 1
    assert inner.resets == [(0, "random", first["seed"])] * 3
    _, info = env.reset()
    assert not info["replay"]["replayed"]


def test_faults_are_not_replayed() -> None:
    env, _, sampler = always()
    play(env, 11)
    assert sampler.stats()["size"] == sampler.stats()["episodes"] == 0


def composed(order: str, seed: int = 0, prob: float = 0.3) -> tuple[Any, Tenths, Stages, Failures]:
    env = Tenths()
    stages, failures = Stages(ONE, seed=seed), Failures(failure_replay_prob=prob, seed=seed)
    if order == "replay outside":
        return FailureReplay(Curriculum(env, stages), failures), env, stages, failures
    return Curriculum(FailureReplay(env, failures), stages), env, stages, failures


ORDERS = ("replay outside", "curriculum outside")
either = pytest.mark.parametrize("order", ORDERS)


@either
def test_replays_do_not_count_for_the_stage(order: str) -> None:
    env, inner, stages, failures = composed(order, prob=1.0)
    play(env, 0)
    info = play(env, 10)
    assert info["replay"]["replayed"] and info["curriculum"]["success_rate"] == 0
    assert inner.resets[0] == inner.resets[1] and inner.resets[0][1] == "first"
    assert (stages.stats()["episodes"], failures.stats()["episodes"]) == (1, 2)


@either
def test_the_callers_choice_passes_both(order: str) -> None:
    env, inner, stages, failures = composed(order, prob=1.0)
    play(env, 0)
    play(env, 0, options={"task_id": 3000})
    assert inner.resets[-1][:2] == (3000, "random")
    play(env, 0, seed=8)
    assert inner.resets[-1] == (stages.draw((8, 0)).task_id, "first", 8)
    assert (stages.stats()["episodes"], failures.stats()["episodes"]) == (2, 2)


@either
def test_both_count_what_happened(order: str) -> None:
    env, inner, stages, failures = composed(order)
    infos = [play(env, action) for action in np.random.default_rng(0).integers(12, size=400)]
    ended = [info for info in infos if info["result"] != "fault"]
    replays = [info for info in ended if info["replay"]["replayed"]]
    assert failures.stats()["episodes"] == len(ended) and failures.stats()["replays"] == len(replays)
    assert stages.stats()["episodes"] == len(ended) - len(replays)
    assert 0.2 < len(replays) / len(ended) < 0.4
    for info in replays:
        assert inner.resets.count((info["task_id"], info["opponent"], info["seed"])) > 1


def without_curriculum() -> tuple[Any, Tenths]:
    env = Tenths()
    return FailureReplay(env, Failures()), env


@pytest.mark.parametrize("build", [without_curriculum, *(lambda o=o: composed(o)[:2] for o in ORDERS)])
@pytest.mark.parametrize("seed", [None, 4])
def test_the_wrappers_state_continues_exactly(build: Any, seed: int | None) -> None:
    actions = [int(action) for action in np.random.default_rng(1).integers(12, size=100)]
    (env, inner), (twin, other) = build(), build()
    env.reset(seed=seed)
    for action in actions:
        play(env, action)
    twin.load_state_dict(json.loads(json.dumps(env.state_dict())))
    expected = [play(env, action)["replay"] for action in actions]
    assert [play(twin, action)["replay"] for action in actions] == expected
    assert other.resets == inner.resets[101:]
    assert twin.state_dict() == env.state_dict()


def test_the_state_of_other_wrappers_is_refused() -> None:
    alone, _ = without_curriculum()
    both, *_ = composed(ORDERS[0])
    for env, state in ((alone, both.state_dict()), (both, alone.state_dict()), (alone, None)):
        with pytest.raises(SamplerError, match=r"was given, allowed: the state of <FailureReplay"):
            env.load_state_dict(state)
    with pytest.raises(SamplerError, match=r"state: .* was given, allowed: a state with"):
        composed(ORDERS[1])[0].load_state_dict(both.state_dict())
