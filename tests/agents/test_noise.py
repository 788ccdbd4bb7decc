"""Random numbers addressed by their purpose."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gamespiel.agents.sampling.noise import Purpose, action_uniforms, episode_seeds, permutation
from task_gym.seeding import SEED_LIMIT

EPISODES = st.lists(st.integers(0, 15), min_size=1, max_size=16, unique=True)


@given(EPISODES, st.integers(0, 2**32 - 1), st.integers(0, 1000), st.integers(0, 50), st.integers(0, 6))
def test_an_episode_gets_its_number_in_any_company(
    episodes: list[int], seed: int, step: int, turn: int, depth: int
) -> None:
    whole = action_uniforms(seed, step, turn, depth, 16, range(16))
    assert np.array_equal(action_uniforms(seed, step, turn, depth, 16, episodes), whole[episodes])
    assert ((whole >= 0) & (whole < 1)).all()


def test_the_order_of_the_calls_does_not_matter() -> None:
    addresses = list(itertools.product((0, 1), (0, 1, 2), (0, 1)))  # step, turn, depth
    forth = {a: action_uniforms(5, *a, 4, range(4)).tolist() for a in addresses}
    back = {a: action_uniforms(5, *a, 4, range(4)).tolist() for a in reversed(addresses)}
    assert forth == back
    assert len({tuple(numbers) for numbers in forth.values()}) == len(addresses)


def test_global_randomness_has_no_part_in_it() -> None:
    np.random.seed(0)
    first = action_uniforms(1, 2, 3, 0, 8, range(8))
    np.random.seed(1)
    assert np.array_equal(first, action_uniforms(1, 2, 3, 0, 8, range(8)))


def test_uses_of_a_seed_are_apart() -> None:
    """Equal numbers in the address, but another purpose or another seed."""
    drawn = [action_uniforms(s, 1, 0, 0, 64, range(64), purpose) for s in (0, 1) for purpose in Purpose]
    for a, b in itertools.combinations(drawn, 2):
        assert abs(np.corrcoef(a, b)[0, 1]) < 0.5 and not np.array_equal(a, b)
    assert episode_seeds(0, 1, 8) != episode_seeds(0, 1, 8, Purpose.EVALUATION_TASKS)


def test_seeds_of_a_step() -> None:
    seeds = episode_seeds(7, 3, 100)
    assert seeds == episode_seeds(7, 3, 100) and len(set(seeds)) == 100
    assert all(type(seed) is int and 0 <= seed < SEED_LIMIT for seed in seeds)
    assert seeds != episode_seeds(7, 4, 100) and seeds != episode_seeds(8, 3, 100)


def test_uniforms_are_uniform() -> None:
    """The mean of 10,000 is within 4 deviations of ½: 4 · √(1/12) / 100 = 0.0115."""
    drawn = np.concatenate([action_uniforms(0, step, 0, 0, 100, range(100)) for step in range(100)])
    assert abs(drawn.mean() - 0.5) < 0.0115


def test_an_epochs_order() -> None:
    order = permutation(0, 1, 0, 50)
    assert sorted(order) == list(range(50)) and order.tolist() != list(range(50))
    assert np.array_equal(order, permutation(0, 1, 0, 50))
    assert not np.array_equal(order, permutation(0, 1, 1, 50))
    assert not np.array_equal(order, permutation(0, 2, 0, 50))
