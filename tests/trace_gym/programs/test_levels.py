"""Tests of levels: points, bands, and distances from a band."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trace_gym.admission.measure import Measured
from trace_gym.programs.builtin.levels import LEVELS, level_of, points


def run(lines: int, output_lines: int = 1, live: int = 1, depth: int = 0) -> Measured:
    return Measured("", lines, output_lines, live, depth, None)


def test_points_worked_out() -> None:
    # 8**4 * 2**2 * 2 * (1 + 1) = 4096 * 4 * 2 * 2 = 65536 = 2**16, which has 17 bits.
    assert points(run(8, 2, 2, 1)) == 17
    # 10**4 * 1 * 3 * 2 = 60000, between 2**15 and 2**16.
    assert points(run(10, 1, 3, 1)) == 16
    # 1000**4 * 16**2 * 12 * 4 = 12288e12, between 2**53 (9007e12) and 2**54 (18014e12).
    assert points(run(1000, 16, 12, 3)) == 54
    assert points(run(0, 0, 0, 0)) == 1


@given(st.integers(1, 10**5), st.integers(1, 99), st.integers(1, 99), st.integers(0, 99))
def test_a_doubling_is_worth_what_it_says(lines: int, output: int, live: int, depth: int) -> None:
    cost = points(run(lines, output, live, depth))
    assert points(run(2 * lines, output, live, depth)) == cost + 4
    assert points(run(lines, 2 * output, live, depth)) == cost + 2
    assert points(run(lines, output, 2 * live, depth)) == cost + 1
    assert points(run(lines, output, live, 2 * depth + 1)) == cost + 1


def test_the_bands_follow_each_other() -> None:
    levels = [level_of(number) for number in LEVELS]
    assert list(LEVELS) == list(range(1, 11))
    assert all(after.low == before.high + 1 for before, after in pairwise(levels))
    assert all(level.high - level.low == 3 for level in levels[1:])
    assert all(
        (before.least, before.most, before.characters) <= (after.least, after.most, after.characters)
        for before, after in pairwise(levels)
    )
    assert (levels[0].most, levels[0].characters) == (2, 400)
    assert levels[-1].characters <= 3000


@pytest.mark.parametrize(
    ("measured", "misses"),
    [
        # Level 3 is 22 to 25 points, 1 to 10 lines of output.
        (run(16, 4, 2), (0, 0)),  # 2**16 * 2**4 * 2: 22 bits
        (run(8, 4, 2), (-4, 0)),  # half the lines: 18
        (run(32, 16, 2), (5, 6)),  # 2**20 * 2**8 * 2: 30 bits; six lines more than ten
    ],
)
def test_misses(measured: Measured, misses: tuple[int, int]) -> None:
    assert level_of(3).misses(measured) == misses


def test_too_little_output_is_below_zero() -> None:
    # Level 10 needs at least 8 lines, and 50 to 53 points.
    assert level_of(10).misses(run(1000, 4, 16, 7)) == (0, -4)  # 10**12 * 16 * 16 * 8: 2.05e15, 51 bits
