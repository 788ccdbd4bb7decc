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
from task_gym.errors import ArgumentError, OpponentError, SeedError

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


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
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


def test_a_bad_seed_is_named() -> None:
    with pytest.raises(SeedError, match=r"-1"):
        make().reset(seed=-1)
