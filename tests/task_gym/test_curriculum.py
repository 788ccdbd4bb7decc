"""Curriculum and FailureReplay: whose start is played, what is reported, and how they compose."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from task_gym.errors import ArgumentError, SamplerError, SeedError
from task_gym.samplers import Failures, Stages, Uniform
from task_gym.wrappers import Curriculum, FailureReplay
from tests.task_gym.scripts import Script, turn
from tests.task_gym.tasks import Tenths, play

TWO = [
    {"name": "easy", "task_id_range": [0, 9], "opponent": "first", "threshold": 0.5},
    {"name": "hard", "task_ids": [50], "opponent": "mcts"},
]


def wrapped(**arguments: Any) -> tuple[Curriculum, Tenths, Stages]:
    env, sampler = Tenths(**arguments), Stages(TWO, progression_window=4)
    return Curriculum(env, sampler), env, sampler


@pytest.mark.parametrize("kind", [Curriculum, FailureReplay])
def test_what_is_no_seed_changes_nothing(kind: Any) -> None:
    """Kept, a wrong seed would begin the address of every later draw."""
    samplers = {Curriculum: lambda: Stages(TWO), FailureReplay: Failures}
    env, twin = (kind(Tenths(), samplers[kind]()) for _ in range(2))
    for each in (env, twin):
        each.reset(seed=np.int64(3))
    for wrong in (-1, "x", 1.5, 2**32):
        with pytest.raises(SeedError, match="allowed: whole numbers"):
            env.reset(seed=wrong)
    for each in (env, twin):
        each.reset()
    assert env.unwrapped.resets == twin.unwrapped.resets
    assert json.loads(json.dumps(env.state_dict()))["seed"] == 3  # plain data, whatever the seed's type


def test_outcomes_promote_and_the_info_says_so() -> None:
    env, inner, _ = wrapped()
    for action, rate in ((10, 1.0), (0, 0.5), (5, 1 / 3)):  # 0.5 is no success
        info = play(env, action)["curriculum"]
        assert (info["stage"], info["name"], info["success_rate"]) == (0, "easy", rate)
        assert "events" not in info
    info = play(env, 6)["curriculum"]  # 2 of 4
    assert (info["stage"], info["name"], info["success_rate"], info["changes"]) == (1, "hard", 0.0, 1)
    (event,) = info["events"]
    assert (event["from"], event["to"], event["success_rate"]) == ("easy", "hard", 0.5)
    _, told = env.reset()
    assert "events" not in told["curriculum"] and told["curriculum"]["progress"] == 1.0
    assert inner.resets[-1][:2] == (50, "mcts")


def test_a_seed_addresses_the_draws_from_then_on() -> None:
    env, inner, sampler = wrapped()
    for _ in range(2):
        play(env, 10, seed=5)
        play(env, 0)
    drawn = [Stages(TWO).draw((5, number)) for number in range(2)]
    assert inner.resets[0] == inner.resets[2] == (drawn[0].task_id, "first", 5)
    # The second episode's seed is the sampler's.
    expected = (drawn[1].task_id, "first", drawn[1].seed)
    assert inner.resets[1] == expected
    assert sampler.state_dict()["draws"] == 0 and sampler.stats()["changes"] == 1
    assert inner.resets[3] == expected


def test_faults_and_abandoned_episodes_count_nowhere() -> None:
    env, _, sampler = wrapped()
    play(env, 11)
    env.reset()
    env.reset()
    assert sampler.stats()["episodes"] == 0


def test_an_episode_that_is_over_at_reset_counts_once() -> None:
    env, _, sampler = wrapped(over_at_reset=True)
    _, info = env.reset()
    assert info["curriculum"]["episodes"] == 1
    *_, info = env.step(0)
    assert info["curriculum"]["episodes"] == sampler.stats()["episodes"] == 1
    # Who looks for the result begins the next.
    env.reset()
    assert sampler.stats()["episodes"] == 2


def test_other_environments_and_samplers_are_refused() -> None:
    with pytest.raises(ArgumentError, match="Curriculum: <Script instance> was given"):
        Curriculum(Script(turn("a")), Stages(TWO))
    for sampler in (None, "uniform", Stages):
        with pytest.raises(ArgumentError, match=r"sampler: .* was given, allowed: a sampler"):
            Curriculum(Tenths(), sampler)  # type: ignore[arg-type]


def test_an_end_without_a_score_is_an_error() -> None:
    class Cut(Tenths):
        def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
            return "b", 0.0, False, True, self.info()

    env = Curriculum(Cut(), Stages(TWO))
    env.reset()
    with pytest.raises(ArgumentError, match=r"no score and result, allowed: .* max_turns"):
        env.step(0)


# -- FailureReplay: what is replayed, and how it composes with Curriculum ----------------------------------

ONE = [{"name": "only", "task_id_range": [0, 999], "opponent": "first"}]


def test_a_failed_start_is_played_again_until_it_is_mastered() -> None:
    inner = Tenths()
    env = FailureReplay(inner, Failures(failure_replay_prob=1.0))
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


def make_composed(order: str, prob: float = 0.3, kind: Any = Stages) -> tuple[Any, Tenths, Any, Failures]:
    env, stages, failures = Tenths(), kind(ONE), Failures(failure_replay_prob=prob)
    if order == "replay outside":
        return FailureReplay(Curriculum(env, stages), failures), env, stages, failures
    return Curriculum(FailureReplay(env, failures), stages), env, stages, failures


ORDERS = ("replay outside", "curriculum outside")


@pytest.mark.parametrize("order", ORDERS)
def test_the_callers_choice_passes_both(order: str) -> None:
    env, inner, stages, failures = make_composed(order, prob=1.0)
    play(env, 0)
    play(env, 0, options={"task_id": 3000})
    assert inner.resets[-1][:2] == (3000, "random")
    play(env, 0, seed=8)
    assert inner.resets[-1] == (stages.draw((8, 0)).task_id, "first", 8)
    assert (stages.stats()["episodes"], failures.stats()["episodes"]) == (2, 2)


@pytest.mark.parametrize(("order", "kind"), [*zip(ORDERS, (Stages, Uniform), strict=True)])
def test_both_count_what_happened(order: str, kind: Any) -> None:
    env, inner, stages, failures = make_composed(order, kind=kind)
    infos = [play(env, action) for action in np.random.default_rng(0).integers(12, size=200)]
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


@pytest.mark.parametrize("build", [without_curriculum, *(lambda o=o: make_composed(o)[:2] for o in ORDERS)])
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
    both, *_ = make_composed(ORDERS[0])
    for env, state in ((alone, both.state_dict()), (both, alone.state_dict()), (alone, None)):
        with pytest.raises(SamplerError, match=r"was given, allowed: the state of <FailureReplay"):
            env.load_state_dict(state)
    with pytest.raises(SamplerError, match=r"state: .* was given, allowed: a state with"):
        make_composed(ORDERS[1])[0].load_state_dict(both.state_dict())
