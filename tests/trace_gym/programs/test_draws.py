"""Tests of the portable stream of choices."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_gym.programs.draws import Draws

SEEDS = st.integers(0, 2**80)


@given(SEEDS, st.lists(st.integers(1, 10**6), max_size=20))
def test_below_is_the_high_part_of_64_bits(seed: int, sizes: list[int]) -> None:
    # floor(bits / 2**64 * n): one draw of 64 bits each, whatever n is.
    bits, draws = random.Random(seed), Draws(seed)
    assert [draws.below(n) for n in sizes] == [bits.getrandbits(64) * n // 2**64 for n in sizes]


@given(SEEDS, st.integers(-50, 50), st.integers(0, 100))
def test_draws_stay_inside(seed: int, low: int, width: int) -> None:
    draws = Draws(seed)
    assert all(low <= draws.between(low, low + width) <= low + width for _ in range(20))
    items = list(range(width + 1))
    assert sorted(draws.shuffled(items)) == items
    assert draws.choice(items) in items
    assert set(draws.picks(items, 7)) <= set(items)
    assert all(low <= number <= low + width for number in draws.numbers(5, low, low + width))


@given(SEEDS, st.integers(0, 9), st.integers(0, 9))
def test_how_many_are_drawn_at_once_changes_nothing_after_them(seed: int, few: int, many: int) -> None:
    few, many = sorted((few, many))
    short, long = Draws(seed), Draws(seed)
    assert short.sample(range(10), few) == long.sample(range(10), many)[:few]
    assert short.picks(range(10), few) == long.picks(range(10), many)[:few]
    assert short.numbers(few, 1, 99) == long.numbers(many, 1, 99)[:few]
    assert short.below(10**9) == long.below(10**9)


@given(SEEDS, st.integers(0, 30))
def test_a_fork_leaves_the_stream_where_it_was(seed: int, drawn: int) -> None:
    one, other = Draws(seed), Draws(seed)
    one.fork()
    fork = other.fork()
    for _ in range(drawn):
        fork.below(7)
    assert one.below(10**9) == other.below(10**9)


def test_samples_are_uniform() -> None:
    draws = Draws(1)
    drawn = Counter(tuple(draws.sample("abc", 2)) for _ in range(6000))
    # Six ordered pairs: standard deviation sqrt(6000 * 5/36) = 28.9, and five of those.
    assert len(drawn) == 6
    assert all(abs(count - 1000) < 145 for count in drawn.values())
    assert abs(sum(draws.chance(30) for _ in range(6000)) - 1800) < 178  # sqrt(6000 * .21) = 35.5, times five


def test_what_cannot_be_drawn_says_so() -> None:
    with pytest.raises(ValueError, match="0 was given, allowed: 1 and more"):
        Draws(0).below(0)
    with pytest.raises(ValueError, match="4 of 3 were asked for"):
        Draws(0).sample("abc", 4)
