"""Tries of legal actions, and the random numbers that draw from them, addressed by their purpose."""

from __future__ import annotations

import math

import numpy as np
import pytest
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
from gamespiel.agents.tokens.trie import ActionTrie, Branch, Node
from task_gym.seeding import DRAWN_LIMIT

END = 99


def digits(action: int) -> tuple[int, ...]:
    """Returns an action's tokens, one per digit, closed by end-of-turn."""
    return (*map(int, str(action)), END)


def build(*actions: int) -> ActionTrie:
    return ActionTrie.build({action: digits(action) for action in actions})


def test_ids_that_begin_one_another() -> None:
    """
    root ─ 1 ─┬─ end               1
              └─ 2 ─┬─ end         12
                    └─ 3 ─ end     123
         └ 2 ─ end                 2
    """
    trie = build(1, 12, 123, 2)
    assert trie.nodes == (Node((), (1, 2)), Node((1,), (2, END)), Node((1, 2), (3, END)))
    assert trie.paths == {
        1: (Branch(0, 0), Branch(1, 1)),
        12: (Branch(0, 0), Branch(1, 0), Branch(2, 1)),
        123: (Branch(0, 0), Branch(1, 0), Branch(2, 0)),
        2: (Branch(0, 1),),
    }
    assert trie.following == {Branch(0, 0): 1, Branch(1, 0): 2}
    assert trie.ends == {Branch(1, 1): 1, Branch(2, 1): 12, Branch(2, 0): 123, Branch(0, 1): 2}


def test_what_is_shared_at_first_is_no_decision() -> None:
    """123 and 124 differ in their third digit only; one legal action leaves nothing to decide."""
    assert build(123, 124).nodes == (Node((1, 2), (3, 4)),)
    trie = build(123)
    assert trie.nodes == () and trie.paths == {123: ()} and not trie.following and not trie.ends


@pytest.mark.parametrize(
    ("sequences", "message"),
    [
        ({}, "at least one legal action, got none"),
        ({3: (3, END), 4: (3, END)}, r"action 3's tokens \[3, 99\] equal or begin those of \[4\]"),
        ({12: (1, 2), 1: (1,), 2: (2, END)}, r"action 1's tokens .* \[12\]"),
    ],
)
def test_sequences_that_cannot_be_told_apart(sequences: dict[int, tuple[int, ...]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ActionTrie.build(sequences)


@given(st.sets(st.integers(0, 5000), min_size=1, max_size=60))
def test_walking_the_trie_enumerates_the_legal_set(legal: set[int]) -> None:
    """A walk over every child from the root finds each action once, by its path and with its tokens."""
    trie = build(*legal)
    found: dict[int, tuple[Branch, ...]] = {}
    waiting: list[tuple[Branch, ...]] = [
        (Branch(0, child),) for child in range(len(trie.nodes[0].children) if trie.nodes else 0)
    ]
    while waiting:
        path = waiting.pop()
        if path[-1] in trie.ends:
            assert path[-1] not in trie.following
            found[trie.ends[path[-1]]] = path
        else:
            node = trie.following[path[-1]]
            waiting += [(*path, Branch(node, child)) for child in range(len(trie.nodes[node].children))]
    assert found == (trie.paths if trie.nodes else {})
    assert set(trie.paths) == legal and len(set(trie.paths.values())) == len(legal)
    for action, path in trie.paths.items():
        # Parents come before children.
        assert [choice.node for choice in path] == sorted({choice.node for choice in path})
        for choice in path:
            node = trie.nodes[choice.node]
            tokens = (*node.prefix, node.children[choice.child])
            assert digits(action)[: len(tokens)] == tokens
    # If every child of a node is equally likely, the actions' probabilities add up to 1.
    shares = [math.prod(1 / len(trie.nodes[c.node].children) for c in path) for path in trie.paths.values()]
    assert math.isclose(sum(shares), 1.0)


# -- random numbers ------------------------------------------------------------------------------------------


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
    assert all(type(seed) is int and 0 <= seed < DRAWN_LIMIT for seed in seeds)
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
