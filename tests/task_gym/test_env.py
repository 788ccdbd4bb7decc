"""The base of the environments: tasks, seeds, options, rendering and copies, on one made for it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from task_gym.env import TaskEnv
from task_gym.errors import ArgumentError, EpisodeError, OptionError, SeedError
from task_gym.ids import IdRanges
from task_gym.picture import picture
from task_gym.spaces import UnicodeText


class Adding(TaskEnv):
    """Adds the actions up, from the task id on, until three were given; task 13 cannot be played."""

    reset_options = ("task_id", "twice")

    def __init__(self, task_ids: Any = None, render_mode: str | None = None) -> None:
        tasks = IdRanges(task_ids or [(0, 99)], 100)
        super().__init__(tasks, {"task_ids": task_ids, "render_mode": render_mode})
        self.observation_space = UnicodeText(99)
        self.action_space = gym.spaces.Discrete(10)
        self.sum: int | None = None

    def _read_options(self, options: dict[str, Any]) -> tuple[Any, ...]:
        return (2 if options.get("twice") else 1,)

    def _begin(self, task_id: int, seed: int, factor: int) -> None:
        if task_id == 13:
            raise ArgumentError("13")
        self.sum, self.factor, self.seed = task_id, factor, seed

    def _opening(self) -> tuple[str, dict[str, Any]]:
        return self._shown(), {"seed": self.seed}

    def _shown(self) -> str:
        return "" if self.sum is None else str(self.sum)

    def step(self, action: int) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self._check_playing()
        assert self.sum is not None
        self._given.append(action)
        self.sum += self.factor * action
        self._over = len(self._given) == 3
        if self.render_mode == "human":
            self.render()
        return self._shown(), 0.0, self._over, False, {}


CLONES: list[Callable[[Any], Any]] = [lambda env: pickle.loads(pickle.dumps(env)), copy.deepcopy]


@pytest.mark.parametrize("clone", CLONES)
@pytest.mark.parametrize("actions", [[], [5], [5, 1, 7]])
def test_a_copy_stands_where_its_original_stands(clone: Callable[[Any], Any], actions: list[int]) -> None:
    env = Adding()
    env.action_space.seed(6)
    env.reset(seed=4, options={"task_id": 40, "twice": True})
    for action in actions:
        env.step(action)
    twin = clone(env)
    assert (twin.sum, twin.seed) == (40 + 2 * sum(actions), 4)
    if len(actions) == 3:
        with pytest.raises(EpisodeError, match="after reset and before the end"):
            twin.step(1)
    else:
        assert twin.step(1)[0] == env.step(1)[0]
    # What it draws later is the same too, and its own.
    drawn = [twin.reset() for _ in range(3)]
    assert [env.reset() for _ in range(3)] == drawn
    assert [twin.action_space.sample() for _ in range(9)] == [env.action_space.sample() for _ in range(9)]


@pytest.mark.parametrize("clone", CLONES)
def test_a_copy_of_what_is_not_being_played(clone: Callable[[Any], Any]) -> None:
    env = Adding()
    assert clone(env).sum is None
    env.reset(seed=1)
    with pytest.raises(ArgumentError, match="13"):
        env.reset(options={"task_id": 13})
    # The episode before is over, and the one asked for never was: neither is in the copy.
    twin = clone(env)
    assert twin.sum is None
    for one in (env, twin):
        with pytest.raises(EpisodeError):
            one.step(1)
        assert one.reset(seed=2, options={"task_id": 3})[0] == "3"


def test_what_was_printed_is_not_printed_again(capsys: pytest.CaptureFixture[str]) -> None:
    env = Adding([7], render_mode="human")
    env.reset(seed=0)
    env.step(2)
    assert capsys.readouterr().out == "7\n9\n"
    twin = pickle.loads(pickle.dumps(env))
    assert capsys.readouterr().out == ""
    twin.step(1)
    assert capsys.readouterr().out == "10\n"


def test_rendering() -> None:
    env = Adding([7], render_mode="ansi")
    assert env.render() == ""
    env.reset(seed=0)
    assert env.render() == "7"
    with pytest.raises(ArgumentError, match=r"'rgb_aray' was given, .*; did you mean 'rgb_array'"):
        Adding(render_mode="rgb_aray")


def test_rendering_a_picture() -> None:
    env = Adding([7], render_mode="rgb_array")
    assert (env.render() == 255).all()  # nothing is shown yet
    env.reset(seed=0)
    assert (env.render() == picture("7")).all()
    env.step(2)
    assert (env.render() == picture("9")).all() and (picture("9") != picture("7")).any()
    twin = pickle.loads(pickle.dumps(env))
    assert (twin.render() == env.render()).all()


def test_rendering_without_a_mode_warns_and_goes_on() -> None:
    env = Adding([7])
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="allowed: 'ansi', 'rgb_array', 'human'") as caught:
        assert env.render() is None
    assert caught[0].filename == __file__  # the line that called render()
    env.spec = gym.envs.registration.EnvSpec("Adding-v3", Adding)
    with pytest.warns(UserWarning, match=r'gym.make\("Adding-v3", render_mode="ansi"\)'):
        env.render()


def test_options_and_seeds_outside_what_is_allowed_change_nothing() -> None:
    env = Adding([(5, 9)])
    env.reset(seed=3, options={"task_id": np.int64(6)})
    for options, message in [
        ({"twise": True}, "reset option 'twise' was given, allowed: task_id, twice; did you mean 'twice'"),
        ({"task_id": 4}, "reset option 'task_id': 4 was given, allowed: 5 … 9"),
        ({"task_id": "5"}, "reset option 'task_id': task id: '5' was given, allowed: whole numbers 0 … 99"),
        ({"task_id": None}, "reset option 'task_id': task id: None was given"),
    ]:
        with pytest.raises(OptionError, match=message):
            env.reset(seed=8, options=options)
    with pytest.raises(SeedError, match="seed: -1 was given"):
        env.reset(seed=-1)
    assert env.np_random_seed == 3
    assert env.step(1)[0] == "7"  # 6 + 1: the episode goes on


def test_a_single_task_leaves_the_generator_alone() -> None:
    env = Adding([7])
    env.reset(seed=3)
    # So the generator's first draw is the next episode's seed.
    _, info = env.reset()
    assert info["seed"] == int(np.random.default_rng(3).random() * (2**32 - 200))
