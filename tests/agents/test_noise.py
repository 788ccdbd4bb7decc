"""Random numbers addressed by their purpose."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gamespiel.agents.sampling.noise import (
    Address,
    DrawnNoise,
    Purpose,
    episode_seeds,
    group_uniforms,
    permutation,
)
from task_gym.seeding import SEED_LIMIT


def uniforms(
    seed: int, step: int, turn: int, depth: int, episodes: Iterable[int], purpose: Purpose = Purpose.ACTIONS
) -> np.ndarray[Any, Any]:
    """Returns the noise of the given episodes, drawn together."""
    return group_uniforms([Address(seed, purpose, step, turn, episode) for episode in episodes])(depth)


EPISODES = st.lists(st.integers(0, 15), min_size=1, max_size=16, unique=True)


@given(EPISODES, st.integers(0, 2**32 - 1), st.integers(0, 1000), st.integers(0, 50), st.integers(0, 6))
def test_an_episode_gets_its_number_in_any_company(
    episodes: list[int], seed: int, step: int, turn: int, depth: int
) -> None:
    whole = uniforms(seed, step, turn, depth, range(16))
    assert np.array_equal(uniforms(seed, step, turn, depth, episodes), whole[episodes])
    alone = [Address(seed, Purpose.ACTIONS, step, turn, episode).uniforms(depth) for episode in episodes]
    assert np.concatenate(alone).tolist() == whole[episodes].tolist()
    # The keys that all runs have had: SeedSequence([seed, purpose, step, turn, depth]) of Philox.
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, 1, step, turn, depth])))
    assert np.array_equal(whole, generator.random(16))
    assert ((whole >= 0) & (whole < 1)).all()


def test_the_order_of_the_calls_does_not_matter() -> None:
    addresses = list(itertools.product((0, 1), (0, 1, 2), (0, 1)))  # step, turn, depth
    forth = {a: uniforms(5, *a, range(4)).tolist() for a in addresses}
    back = {a: uniforms(5, *a, range(4)).tolist() for a in reversed(addresses)}
    assert forth == back
    assert len({tuple(numbers) for numbers in forth.values()}) == len(addresses)


def test_global_randomness_has_no_part_in_it() -> None:
    np.random.seed(0)
    first = uniforms(1, 2, 3, 0, range(8))
    np.random.seed(1)
    assert np.array_equal(first, uniforms(1, 2, 3, 0, range(8)))


def test_uses_of_a_seed_are_apart() -> None:
    """Equal numbers in the address, but another purpose or another seed."""
    drawn = [uniforms(s, 1, 0, 0, range(64), purpose) for s in (0, 1) for purpose in Purpose]
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
    drawn = np.concatenate([uniforms(0, step, 0, 0, range(100)) for step in range(100)])
    assert abs(drawn.mean() - 0.5) < 0.0115


def test_an_epochs_order() -> None:
    order = permutation(0, 1, 0, 50)
    assert sorted(order) == list(range(50)) and order.tolist() != list(range(50))
    assert np.array_equal(order, permutation(0, 1, 0, 50))
    assert not np.array_equal(order, permutation(0, 1, 1, 50))
    assert not np.array_equal(order, permutation(0, 2, 0, 50))


def test_groups_are_drawn_apart_and_come_back_in_order() -> None:
    """Episodes 3 and 1 of turn 0, with episode 3 of turn 2 between them."""
    mixed = [Address(0, Purpose.ACTIONS, 4, turn, episode) for turn, episode in ((0, 3), (2, 3), (0, 1))]
    expected = [address.uniforms(1)[0] for address in mixed]
    assert group_uniforms(mixed)(1).tolist() == expected and len(set(expected)) == 3


def test_drawn_noise_takes_one_draw_per_depth_and_group() -> None:
    """Of a batch of 4, a group of rows 3 and 0: each depth draws 4 numbers, and takes two of them."""
    rng, again = np.random.default_rng(0), np.random.default_rng(0)
    batch = DrawnNoise.for_batch(rng.random, 4)
    noise = group_uniforms([batch[3], batch[0]])
    for depth in range(2):
        assert np.array_equal(noise(depth), again.random(4)[[3, 0]])
