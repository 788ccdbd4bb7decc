"""The base of the environments: tasks, seeds, options, rendering and copies, on one made for it."""

from __future__ import annotations

import copy
import importlib
import pickle
import pkgutil
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import game_gym
import task_gym
import trace_gym
from task_gym.env import LazyGeneratorEnv, TaskEnv
from task_gym.errors import ArgumentError, EpisodeError, OptionError, SeedError, TaskIdError
from task_gym.ids import IdRanges
from task_gym.picture import picture
from task_gym.seeding import Stream, shuffled
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


RANGES = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)).map(sorted), min_size=1, max_size=4)


@given(RANGES, st.integers(1, 12), st.data())
def test_members_are_what_counting_finds(ranges: list[list[int]], modulus: int, data: st.DataObject) -> None:
    residues = sorted(data.draw(st.sets(st.integers(0, modulus - 1), min_size=1)))
    wanted = [i for first, last in ranges for i in range(first, last + 1) if i % modulus in residues]
    if not wanted:
        with pytest.raises(TaskIdError, match="holds no id of the kind asked for"):
            IdRanges(ranges, 100, modulus=modulus, residues=residues)
        return
    if len(wanted) > 100:
        with pytest.raises(TaskIdError, match="allowed: 100 ids in all"):
            IdRanges(ranges, 100, modulus=modulus, residues=residues)
        return
    ids = IdRanges(ranges, 100, modulus=modulus, residues=residues)
    assert list(ids) == wanted and len(ids) == len(wanted)
    assert [ids[position] for position in range(-len(wanted), 0)] == wanted
    for beyond in (len(wanted), -len(wanted) - 1):
        with pytest.raises(IndexError):
            ids[beyond]
    assert [i for i in range(100) if i in ids] == sorted(set(wanted))
    generator = np.random.default_rng(0)
    assert {ids.draw(lambda: generator) for _ in range(30)} <= set(wanted)


def test_large_sets_are_not_written_out() -> None:
    limit = 2**62
    ids = IdRanges([(5, limit - 1)], limit, modulus=160, residues=[3, 19])
    # 5 is past 3 in its block of 160, so the first members are 19, 163, 179.
    assert [ids[0], ids[1], ids[2]] == [19, 163, 179]
    # 2**62 = 160 * 28823037615171174 + 64: so many whole blocks of two, two more, less the 3 below 5.
    assert limit == 160 * 28823037615171174 + 64
    assert len(ids) == 2 * 28823037615171174 + 2 - 1
    assert ids[len(ids) - 1] == ids[-1] == 160 * 28823037615171174 + 19
    assert str(ids) == f"5 … {limit - 1}"


def test_it_draws_what_gymnasiums_own_draws() -> None:
    envs: list[Any] = [LazyGeneratorEnv(), gym.Env()]
    for seed in (7, None, 8, 7, 2**32 - 201):
        drawn = []
        for env in envs:
            env.reset(seed=seed)
            drawn.append([env.np_random.random() for _ in range(3)])
            assert env.np_random_seed == (seed if seed is not None else 7)
        assert drawn[0] == drawn[1]


# -- Gymnasium's classes are direct bases of ours: skrl looks at nothing else to recognise an environment --


def classes() -> Iterator[type]:
    """Yields the environments and wrappers that the environments' rooms define, but for vectors."""
    rooms: list[ModuleType] = [task_gym, game_gym, trace_gym]
    for room in rooms:
        for found in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            try:
                module = importlib.import_module(found.name)
            except ImportError:  # of a library that is not installed
                continue
            for value in vars(module).values():
                if isinstance(value, type) and value.__module__ == found.name and issubclass(value, gym.Env):
                    yield value


@pytest.mark.parametrize("made", sorted(set(classes()), key=lambda made: made.__qualname__))
def test_gymnasiums_class_is_a_direct_base(made: type) -> None:
    assert (gym.Wrapper if issubclass(made, gym.Wrapper) else gym.Env) in made.__bases__


SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, st.lists(st.integers(1, 5000), max_size=40))
def test_below_equals_choice(seed: int, sizes: list[int]) -> None:
    theirs, ours = np.random.RandomState(seed), Stream(seed)
    assert [ours.below(n) for n in sizes] == [theirs.choice(n) for n in sizes]


@given(SEEDS, st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=60), max_size=20))
def test_weighted_and_uniform_draws_share_one_stream(seed: int, weights: list[list[int]]) -> None:
    theirs, ours = np.random.RandomState(seed), Stream(seed)
    for row in weights:
        p = tuple(weight / sum(row) for weight in row)
        assert ours.weighted(p) == theirs.choice(len(p), p=p)
        assert ours.choice(row) == theirs.choice(row)


def test_reseeding_starts_over_and_the_random_state_is_the_same_stream() -> None:
    stream = Stream(5)
    first = [stream.below(1000) for _ in range(700)]  # past the generator's block of 624 words
    stream.seed(5)
    assert [int(stream.random_state.randint(0, 1000)) for _ in range(700)] == first


def test_golden_stream() -> None:
    # numpy.random.seed(0); randint(0, 10, 5) is [5 0 3 3 7] in every NumPy, and rand() is 0.5488135….
    stream = Stream(0)
    assert [stream.below(10) for _ in range(5)] == [5, 0, 3, 3, 7]
    stream.seed(0)
    # 0.5488 falls into the second of (0.5, 0.25, 0.25): it is past 0.5 and not past 0.75.
    assert stream.weighted((0.5, 0.25, 0.25)) == 1


@given(SEEDS, st.lists(st.integers(), max_size=30))
def test_a_shuffle_is_a_permutation_that_follows_from_its_draws(seed: int, items: list[int]) -> None:
    order = shuffled(items, Stream(seed).below)
    assert sorted(order) == sorted(items)
    assert shuffled(items, Stream(seed).below, len(items) // 2) == order[: len(items) // 2]


def test_golden_shuffle() -> None:
    # Draws of 2 from 4, 0 from 3, 1 from 2 and 0 from 1 take "c", then "a", then "d", then "b".
    draws = iter([2, 0, 1, 0])
    assert shuffled("abcd", lambda n: next(draws)) == ["c", "a", "d", "b"]
