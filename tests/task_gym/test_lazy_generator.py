"""A generator that is made late draws what one made at once would."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from task_gym.lazy_generator import LazyGeneratorEnv


class Eager(gym.Env[int, int]):
    """Gymnasium's own way."""


class Lazy(LazyGeneratorEnv[int, int]):
    """Ours."""


def reset(env: Any, seed: int | None) -> None:
    # Gymnasium's base returns nothing either: reset is for environments to extend.
    assert env.reset(seed=seed) is None


def test_it_draws_what_gymnasiums_own_draws() -> None:
    envs = Lazy(), Eager()
    for seed in (7, None, 8, 7, 2**32 - 201):
        drawn = []
        for env in envs:
            reset(env, seed)
            drawn.append([env.np_random.random() for _ in range(3)])
            assert env.np_random_seed == (seed if seed is not None else 7)
        assert drawn[0] == drawn[1]


def test_a_reset_begins_anew_with_a_seed_alone() -> None:
    env = Lazy()
    reset(env, 2)
    first = env.np_random
    reset(env, None)
    assert env.np_random is first  # goes on where it stood
    reset(env, 2)
    assert env.np_random is not first


def test_without_a_seed_it_is_gymnasiums_own() -> None:
    env = Lazy()
    reset(env, None)
    generator = env.np_random
    assert env.np_random is generator
    seed = env.np_random_seed
    assert np.random.default_rng(seed).bit_generator.state == generator.bit_generator.state


def test_a_generator_can_be_given() -> None:
    env, given = Lazy(), np.random.default_rng(3)
    reset(env, 1)
    env.np_random = given
    assert env.np_random is given and env.np_random_seed == -1  # as Gymnasium says where it is not known
    reset(env, 1)
    assert env.np_random is not given
