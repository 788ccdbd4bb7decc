"""Every constructor argument, reset option and seed outside what is allowed has a named error."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import game_gym  # noqa: F401  (registers the environments)
from task_gym.errors import (
    ArgumentError,
    EpisodeError,
    GameError,
    OpponentError,
    OptionError,
    SeedError,
    TaskIdError,
)
from tests.game_gym.play import LEDUC, make

REMOTE = {"backend": "affinetes", "base_url": "http://x"}
DOCKER = {"backend": "affinetes", "mode": "docker"}


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"task_id": None}, ArgumentError, "exactly one of task_id, task_ids and game"),
        ({"task_id": -1}, TaskIdError, "task id: -1 was given"),
        ({"task_ids": 5}, ArgumentError, "task_id, task_ids was given"),
        ({"task_id": None, "task_ids": 5}, TaskIdError, "task_ids: 5 was given"),
        ({"task_id": None, "game": 2048}, GameError, "2048 was given, .*did you mean '2048'"),
        ({"task_id": None, "game": "hex(players=2)"}, GameError, "'hex', with parameters as params="),
        ({"task_id": None, "game": "hex", "params": [("size", 5)]}, ArgumentError, "a mapping of names"),
        ({"task_id": None, "game": "hex", "params": []}, ArgumentError, r"params: \[\] was given"),
        ({"params": {"players": 2}}, ArgumentError, "params: .* allowed: with game only"),
        ({"opponent": "randm"}, OpponentError, "did you mean 'random'"),
        ({"opponent": "random:3"}, OpponentError, "'random' takes no argument"),
        ({"opponent": "mcts:0"}, OpponentError, "mcts:SIMS"),
        ({"opponent": None}, OpponentError, "None was given"),
        ({"backend": "locl"}, ArgumentError, "did you mean 'local'"),
        ({"base_url": "http://x"}, ArgumentError, "with backend 'local', allowed: .* 'affinetes'"),
        ({"env_vars": {"KEY": "s3cret"}}, ArgumentError, "a value was given with backend 'local'"),
        ({"backend": "affinetes"}, ArgumentError, "base_url: None was given"),
        ({**REMOTE, "base_url": "localhost:8000"}, ArgumentError, "as 'http://127.0.0.1:8000'"),
        ({**REMOTE, "timeout": 0}, ArgumentError, "timeout: 0 was given"),
        ({**REMOTE, "mode": "urls"}, ArgumentError, "did you mean 'url'"),
        ({**DOCKER, "base_url": "http://h"}, ArgumentError, "base_url: .* 'docker', allowed: .* 'url' only"),
        ({**DOCKER, "mem_limit": "2 G"}, ArgumentError, "mem_limit: '2 G' was given, allowed: .* '2g'"),
        ({**DOCKER, "cpu_limit": 0}, ArgumentError, "cpu_limit: 0 was given"),
        ({**DOCKER, "host": "box"}, ArgumentError, "host: 'box' was given"),
        ({**DOCKER, "env_vars": {"A": 1}}, ArgumentError, "names to texts"),
        ({"bakend": "local"}, ArgumentError, "'bakend' was given, allowed: .*did you mean 'backend'"),
        ({"seeding": "openev"}, ArgumentError, "did you mean 'openenv'"),
        ({"rules": "yes"}, ArgumentError, "rules: 'yes' was given, allowed: True, False"),
        ({"reward": "scores"}, ArgumentError, "did you mean 'score'"),
        ({"illegal": "raises"}, ArgumentError, "did you mean 'raise'"),
        ({"max_turns": 1}, ArgumentError, "max_turns: 1 was given, allowed: None or a whole"),
        ({"max_turns": True}, ArgumentError, "max_turns: True"),
        ({"render_mode": "rgb"}, ArgumentError, "'rgb' was given, allowed: None, 'ansi', 'rgb_array'"),
    ],
)
@pytest.mark.parametrize("name", ["GameSpiel-v0", "GameSpielText-v0"])
def test_constructor(name: str, arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    entry = gym.spec(name).entry_point
    with pytest.raises(error, match=message):
        gym.envs.registration.load_env_creator(entry)(**{"task_id": LEDUC, **arguments})  # type: ignore[arg-type]


def test_parse() -> None:
    with pytest.raises(ArgumentError, match=r"parse: 'lst' was given, .*did you mean 'last'"):
        gym.make("GameSpielText-v0", task_id=LEDUC, parse="lst")


@pytest.mark.parametrize("seed", [-1, 2**32 - 200, 1.0, "3", True])
def test_seeds(seed: object) -> None:
    env = make(task_id=LEDUC)
    with pytest.raises(SeedError, match="allowed: whole numbers 0 … 4294967095"):
        env.reset(seed=seed)
    env.reset(seed=2**32 - 201)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": LEDUC}, "'task' was given, allowed: .* list_actions; did you mean 'task_id'"),
        ({"task_id": LEDUC + 10}, "200000010 was given, allowed: 200000000 … 200000009, 200000050"),
        ({"task_id": "a"}, "reset option 'task_id': task id: 'a' was given"),
        ({"task_id": None}, "None was given"),
        ({"opponent": "fist"}, "reset option 'opponent': .*did you mean 'first'"),
        ({"opponent": "mcts:x"}, "reset option 'opponent': .*mcts:SIMS"),
        ({"opponent": None}, "None was given"),
        ([("task_id", LEDUC)], "allowed: None or a mapping with task_id, opponent"),
        (0, "reset options: 0 was given"),
    ],
)
def test_options(options: Any, message: str) -> None:
    env = make(task_ids=[(LEDUC, LEDUC + 9), LEDUC + 50])
    with pytest.raises(OptionError, match=message):
        env.reset(options=options)
    with pytest.raises(OptionError, match="200000000 was given, allowed: the one game named"):
        make(game="leduc_poker").reset(options={"task_id": LEDUC})


def test_options_hold_for_one_episode() -> None:
    env = make(task_ids=[(LEDUC, LEDUC + 9), LEDUC + 50])
    _, info = env.reset(seed=1, options={"task_id": LEDUC + 50, "opponent": "first"})
    assert (info["task_id"], info["opponent"], info["seed"]) == (LEDUC + 50, "first", 1)
    assert env.reset(options={"opponent": "open"})[1]["opponent"] == "open"
    assert env.reset(options={})[1]["opponent"] == "random"


def test_steps_outside_an_episode() -> None:
    env = make(game="kuhn_poker", illegal="forfeit")
    with pytest.raises(EpisodeError, match="outside an episode"):
        env.step(0)
    env.reset(seed=0)
    env.step(9)
    with pytest.raises(EpisodeError, match="after reset and before the end"):
        env.step(0)


def test_numpys_whole_numbers_are_whole_numbers() -> None:
    env = make(game="hex", params={"board_size": np.int64(5)}, max_turns=np.int64(2))
    env.reset(seed=np.uint32(1))
    *_, info = env.step(np.array(3))
    assert info["turn"] == 1
    assert env.step(np.int16(info["legal_actions"][0]))[-1]["result"] == "cut"


@pytest.mark.parametrize("action", ["0", 0.0, None, [0]])
def test_an_action_is_a_whole_number(action: object) -> None:
    env = make(game="kuhn_poker")
    env.reset(seed=0)
    with pytest.raises(ArgumentError, match="allowed: a whole number"):
        env.step(action)
