"""Several opponents with weights: the seed decides who plays."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import gymnasium as gym
import pytest

import game_gym  # noqa: F401  (registers the environments)
from game_gym.wrappers import MixedOpponents
from task_gym import opponents
from task_gym.errors import ArgumentError, OpponentError
from task_gym.samplers import Failures, Stages
from task_gym.wrappers import Curriculum, FailureReplay

WEIGHTS = {"random": 0.5, "first": 0.3}


def make(weights: Any = WEIGHTS, **arguments: Any) -> MixedOpponents:
    return MixedOpponents(gym.make("GameSpiel-v0", **({"game": "kuhn_poker"} | arguments)), weights)


def test_shares_are_the_weights() -> None:
    """0.5 and 0.3 are five eighths and three eighths: of 4,000 seeds 2,500 within four deviations."""
    env, seeds = make(), range(4000)
    played = Counter(env.reset(seed=seed)[1]["opponent"] for seed in seeds)
    assert set(played) == set(WEIGHTS)
    assert abs(played["random"] - 2500) < 4 * math.sqrt(4000 * 5 / 8 * 3 / 8)


def test_a_seed_is_one_opponent_and_the_same_game_as_without() -> None:
    one, other = make(), make()
    other.reset(seed=99)
    for seed in range(20):
        text, info = one.reset(seed=seed)
        assert other.reset(seed=seed)[1]["opponent"] == info["opponent"]
        alone = gym.make("GameSpiel-v0", game="kuhn_poker", opponent=info["opponent"])
        assert alone.reset(seed=seed)[0] == text


def test_without_a_seed_the_last_one_decides() -> None:
    records = []
    for _ in range(2):
        env = make()
        env.reset(seed=3)
        records.append([(info["seed"], info["opponent"]) for _, info in (env.reset() for _ in range(20))])
    assert records[0] == records[1] and {opponent for _, opponent in records[0]} == set(WEIGHTS)


def test_a_caller_may_name_the_opponent() -> None:
    env = make()
    assert {env.reset(seed=s, options={"opponent": "first"})[1]["opponent"] for s in range(9)} == {"first"}


def test_it_waits_if_one_of_them_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes first: else the episodes of a slow opponent would be played one after the other."""
    monkeypatch.setattr(opponents, "_REGISTRY", dict(opponents._REGISTRY))
    first = opponents.find_opponent("first").factory
    opponents.register_opponent("slow", lambda seating: first(seating), waits=True)
    assert make({"random": 1, "slow": 1}).unwrapped.waits
    assert not make().unwrapped.waits


def end(env: gym.Env[Any, Any]) -> dict[str, Any]:
    """Plays an episode with first actions; returns the info of its end."""
    _, info = env.reset()
    while "result" not in info:
        *_, info = env.step(info["legal_actions"][0])
    return info


class Copies(gym.Wrapper[Any, Any, Any, Any]):
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        return self.env.reset(seed=seed, options=dict(options or {}))


def test_samplers_outside_hear_of_every_episode() -> None:
    """Also if a wrapper in between copies the options, which the curriculum has chosen."""
    game, weights = gym.make("GameSpiel-v0", game="kuhn_poker"), {"random": 1, "first": 1}
    stages, failures = Stages([{"name": "only"}]), Failures(failure_replay_prob=0.5)
    env = Curriculum(Copies(FailureReplay(MixedOpponents(game, weights), failures)), stages)
    infos = [end(env) for _ in range(60)]
    assert {info["opponent"] for info in infos} == set(weights)
    replays = sum(info["replay"]["replayed"] for info in infos)
    assert failures.stats()["episodes"] == 60 and failures.stats()["replays"] == replays > 5
    assert stages.stats()["episodes"] == 60 - replays


@pytest.mark.parametrize("inner", [Curriculum, FailureReplay])
def test_samplers_inside_are_refused(inner: Any) -> None:
    """They would take the mixture's choice for the caller's, and count nothing."""
    sampler = Stages([{"name": "only"}]) if inner is Curriculum else Failures()
    with pytest.raises(ArgumentError, match=f"MixedOpponents: {inner.__name__} was given inside; allowed"):
        MixedOpponents(inner(gym.make("GameSpiel-v0", game="kuhn_poker"), sampler), WEIGHTS)


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        (None, ArgumentError, r"opponents: None was given, allowed: a mapping of names to weights"),
        ({}, ArgumentError, r"opponents: \{\} was given, allowed: a mapping of names to weights"),
        ({"random": 0}, ArgumentError, r"opponents: 'random': 0 was given, allowed: numbers above 0"),
        ({"random": math.nan}, ArgumentError, r"'random': nan was given"),
        ({"randm": 1}, OpponentError, r"'randm' was given, .*did you mean 'random'"),
        ({"random": 1, "mcts:0": 1}, OpponentError, r"'0' was given"),
    ],
)
def test_errors(weights: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(weights)
