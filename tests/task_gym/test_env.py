"""The base of the environments: rendering, sets of tasks, generators and streams, and their classes."""

from __future__ import annotations

import importlib
import pickle
import pkgutil
import sys
from contextlib import suppress
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import game_gym
import task_gym
import trace_gym
from task_gym.env import LazyGeneratorEnv
from task_gym.errors import TaskIdError
from task_gym.ids import IdRanges
from task_gym.picture import picture
from task_gym.seeding import Stream, shuffled


def make(**arguments: Any) -> Any:
    """Returns an environment of one task, which draws nothing for it."""
    return gym.make("CodeTrace-v0", task_id=7, **arguments).unwrapped


def test_what_was_printed_is_not_printed_again(capsys: pytest.CaptureFixture[str]) -> None:
    env = make(render_mode="human")
    text, _ = env.reset(seed=0)
    assert capsys.readouterr().out == f"{text}\n"
    twin = pickle.loads(pickle.dumps(env))
    assert capsys.readouterr().out == ""
    end, *_ = twin.step("")
    assert capsys.readouterr().out == f"{end}\n"


def test_rendering() -> None:
    env, pictured = make(render_mode="ansi"), make(render_mode="rgb_array")
    assert env.render() == "" and (pictured.render() == 255).all()  # nothing is shown yet
    text, _ = env.reset(seed=0)
    pictured.reset(seed=0)
    assert env.render() == text and (pictured.render() == picture(text)).all()
    end, *_ = pictured.step("")
    assert (pictured.render() == picture(end)).all() and (picture(end) != picture(text)).any()
    assert (pickle.loads(pickle.dumps(pictured)).render() == pictured.render()).all()


def test_rendering_without_a_mode_warns_and_goes_on() -> None:
    env = make()
    env.reset(seed=0)
    with pytest.warns(UserWarning, match=r'gym.make\("CodeTrace-v0", render_mode="ansi"\)') as caught:
        assert env.render() is None
    assert caught[0].filename == __file__  # the line that called render()
    env.spec = None
    with pytest.warns(UserWarning, match=r"CodeTraceEnv\(..., render_mode"):
        env.render()


def test_a_single_task_leaves_the_generator_alone() -> None:
    env = make()
    env.reset(seed=3)
    # So the generator's first draw is the next episode's seed.
    _, info = env.reset()
    assert info["seed"] == int(np.random.default_rng(3).random() * (2**32 - 200))


RANGES = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)).map(sorted), min_size=1, max_size=4)


@given(RANGES, st.integers(1, 12), st.data())
def test_members_are_what_counting_finds(ranges: list[list[int]], modulus: int, data: st.DataObject) -> None:
    residues = sorted(data.draw(st.sets(st.integers(0, modulus - 1), min_size=1)))
    wanted = [i for first, last in ranges for i in range(first, last + 1) if i % modulus in residues]
    if not 0 < len(wanted) <= 100:
        said = "allowed: 100 ids in all" if wanted else "holds no id of the kind asked for"
        with pytest.raises(TaskIdError, match=said):
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


def test_gymnasiums_class_is_a_direct_base() -> None:
    """Checks the environments and wrappers that the environments' rooms define, but for vectors."""
    checked = 0
    for room in (task_gym, game_gym, trace_gym):
        for _, name, _ in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            with suppress(ImportError):  # of a library that is not installed
                importlib.import_module(name)
            for value in vars(sys.modules.get(name, room)).values():
                if isinstance(value, type) and value.__module__ == name and issubclass(value, gym.Env):
                    direct = gym.Wrapper if issubclass(value, gym.Wrapper) else gym.Env
                    assert direct in value.__bases__, value
                    checked += 1
    assert checked > 20


SEEDS = st.integers(0, 2**32 - 1)


@settings(max_examples=50)
@given(
    SEEDS,
    st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=60), max_size=20),
    st.lists(st.integers(1, 5000), max_size=40),
)
def test_weighted_and_uniform_draws_share_one_stream(
    seed: int, weights: list[list[int]], sizes: list[int]
) -> None:
    theirs, ours = np.random.RandomState(seed), Stream(seed)
    assert [ours.below(n) for n in sizes] == [theirs.choice(n) for n in sizes]
    for row in weights:
        p = tuple(weight / sum(row) for weight in row)
        assert ours.weighted(p) == theirs.choice(len(p), p=p)
        assert ours.choice(row) == theirs.choice(row)


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
