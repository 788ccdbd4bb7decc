"""Tests of the portable stream of choices."""

import random

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


def test_what_cannot_be_drawn_says_so() -> None:
    with pytest.raises(ValueError, match="0 was given, allowed: 1 and more"):
        Draws(0).below(0)
    with pytest.raises(ValueError, match="4 of 3 were asked for"):
        Draws(0).sample("abc", 4)
