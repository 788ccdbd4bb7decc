"""The reseedable stream draws what NumPy's legacy ``choice`` draws."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from task_gym.seeding import Stream, shuffled

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


def test_golden_stream() -> None:
    # numpy.random.seed(0); randint(0, 10, 5) is [5 0 3 3 7] in every NumPy, and rand() is 0.5488135….
    stream = Stream(0)
    assert [stream.below(10) for _ in range(5)] == [5, 0, 3, 3, 7]
    stream.seed(0)
    # 0.5488 falls into the second of (0.5, 0.25, 0.25): it is past 0.5 and not past 0.75.
    assert stream.weighted((0.5, 0.25, 0.25)) == 1


def test_reseeding_starts_over_and_the_random_state_is_the_same_stream() -> None:
    stream = Stream(5)
    first = [stream.below(1000) for _ in range(700)]  # past the generator's block of 624 words
    stream.seed(5)
    assert [int(stream.random_state.randint(0, 1000)) for _ in range(700)] == first


def test_one_choice_draws_nothing() -> None:
    stream, other = Stream(1), Stream(1)
    assert stream.choice(["only"]) == "only"
    assert stream.below(10**6) == other.below(10**6)


@given(SEEDS, st.lists(st.integers(), max_size=30))
def test_a_shuffle_is_a_permutation_that_follows_from_its_draws(seed: int, items: list[int]) -> None:
    order = shuffled(items, Stream(seed).below)
    assert sorted(order) == sorted(items)
    assert shuffled(items, Stream(seed).below, len(items) // 2) == order[: len(items) // 2]


def test_golden_shuffle() -> None:
    # Draws of 2 from 4, 0 from 3, 1 from 2 and 0 from 1 take "c", then "a", then "d", then "b".
    draws = iter([2, 0, 1, 0])
    assert shuffled("abcd", lambda n: next(draws)) == ["c", "a", "d", "b"]
