"""Curriculum and failure replay over games."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import pytest

import game_gym  # noqa: F401  (registers the environments)
from task_gym.errors import OptionError
from task_gym.samplers import Failures, Stage, Stages
from task_gym.wrappers import Curriculum, FailureReplay
from tests.game_gym.play import LEDUC, plain

#: As people have it in their files.
THREE = [
    {"name": "easy", "task_id_range": [0, 999999999], "opponent": "random", "threshold": 0.6},
    {"name": "medium", "task_id_range": [1000000000, 1999999999], "opponent": "random", "threshold": 0.5},
    {"name": "hard", "task_id_range": [2000000000, 2999999999], "opponent": "mcts"},
]


def without(record: list[Any]) -> list[Any]:
    """A record less the samplers' numbers."""
    return [
        tuple(
            {key: value for key, value in part.items() if key not in ("curriculum", "replay")}
            if isinstance(part, dict)
            else part
            for part in step
        )
        for step in record
    ]


def play(env: Any) -> list[Any]:
    """An episode of first legal actions, as plain data."""
    text, info = env.reset()
    record: list[Any] = [(text, plain(info))]
    while "result" not in info:
        text, reward, terminated, truncated, info = env.step(info["legal_actions"][0])
        record.append((text, reward, terminated, truncated, plain(info)))
    return record


def test_the_three_stages_reach_every_game_of_theirs() -> None:
    stages = Stages(THREE)
    env = Curriculum(gym.make("GameSpiel-v0", task_ids=stages.task_ids, rules=False), stages)
    games = set()
    for _ in range(200):
        _, info = env.reset()
        assert info["task_id"] <= 999999999 and info["opponent"] == "random"
        games.add(info["task_id"] // 100_000_000)
    assert games == set(range(10))


@pytest.mark.parametrize("order", [0, 1])
def test_a_replay_is_the_same_game(order: int) -> None:
    stages = Stages([Stage("only", task_ids=[(LEDUC, LEDUC + 99)], opponent="mcts:3")])
    failures = Failures(failure_replay_prob=1.0)
    env: Any = gym.make("GameSpiel-v0", task_ids=[(LEDUC, LEDUC + 999)])
    both = [lambda env: Curriculum(env, stages), lambda env: FailureReplay(env, failures)]
    for wrap in both[:: -1 if order else 1]:
        env = wrap(env)
    for _ in range(20):
        record = play(env)
        if not record[-1][-1]["success"]:
            break
    again = play(env)
    assert again[0][-1]["replay"]["replayed"] and again[0][-1]["opponent"] == "mcts:3"
    assert without(again) == without(record)


def test_a_replay_of_a_game_by_name_against_a_stand_in() -> None:
    # In simultaneous games "random" plays in the place of "mcts".
    env = FailureReplay(
        gym.make("GameSpiel-v0", game="goofspiel", opponent="mcts"), Failures(failure_replay_prob=1.0)
    )
    for _ in range(20):
        record = play(env)
        if not record[-1][-1]["success"]:
            break
    assert without(play(env)) == without(record)
    # One seat, no task id.
    env = FailureReplay(gym.make("GameSpiel-v0", game="2048", max_turns=3), Failures(failure_replay_prob=1.0))
    record = play(env)
    assert record[-1][-1]["result"] == "cut" and without(play(env)) == without(record)


def test_what_the_environment_does_not_draw_is_an_error() -> None:
    stages = Stages(THREE)
    env = Curriculum(gym.make("GameSpiel-v0", task_id=LEDUC), stages)
    with pytest.raises(OptionError, match=rf"reset option 'task_id': \d+ was given, allowed: {LEDUC}"):
        env.reset()
    unknown = Stages([Stage("a", opponent="mtcs")])
    with pytest.raises(OptionError, match=r"'mtcs' was given.*did you mean 'mcts'"):
        Curriculum(gym.make("GameSpiel-v0", game="leduc_poker"), unknown).reset()
