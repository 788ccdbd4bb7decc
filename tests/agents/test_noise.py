"""Random numbers addressed by their purpose."""

from __future__ import annotations

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

EPISODES = st.lists(st.integers(0, 15), min_size=1, max_size=16, unique=True)


@given(EPISODES, st.integers(0, 2**32 - 1), st.integers(0, 1000), st.integers(0, 50), st.integers(0, 6))
def test_an_episode_gets_its_number_in_any_company(
    episodes: list[int], seed: int, step: int, turn: int, depth: int
) -> None:
    """The keys are those of all runs: SeedSequence([seed, purpose, step, turn, depth]) of Philox."""
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, 1, step, turn, depth])))
    expected = generator.random(16)[episodes]
    addresses = [Address(seed, Purpose.ACTIONS, step, turn, episode) for episode in episodes]
    assert np.array_equal(group_uniforms(addresses)(depth), expected)
    assert np.array_equal(np.concatenate([address.uniforms(depth) for address in addresses]), expected)


def test_seeds_of_a_step() -> None:
    seeds = episode_seeds(7, 3, 100)
    assert seeds == episode_seeds(7, 3, 100) and len(set(seeds)) == 100
    assert all(type(seed) is int and 0 <= seed < SEED_LIMIT for seed in seeds)
    assert seeds != episode_seeds(7, 4, 100) and seeds != episode_seeds(8, 3, 100)
    assert seeds != episode_seeds(7, 3, 100, Purpose.EVALUATION_TASKS)


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
