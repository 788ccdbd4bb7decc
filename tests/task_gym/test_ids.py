"""Sets of task ids."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from task_gym.errors import TaskIdError
from task_gym.ids import IdRanges

RANGES = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)).map(sorted), min_size=1, max_size=4)


@given(RANGES, st.integers(1, 12), st.data())
def test_members_are_what_counting_finds(ranges: list[list[int]], modulus: int, data: st.DataObject) -> None:
    residues = sorted(data.draw(st.sets(st.integers(0, modulus - 1), min_size=1)))
    wanted = [i for first, last in ranges for i in range(first, last + 1) if i % modulus in residues]
    if not wanted:
        with pytest.raises(TaskIdError, match="holds no id of the kind asked for"):
            IdRanges(ranges, 100, modulus=modulus, residues=residues)
        return
    if len(wanted) > 100:
        with pytest.raises(TaskIdError, match="allowed: 100 ids in all"):
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
