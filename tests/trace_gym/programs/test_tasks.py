"""Tests of the builtin programs' task ids, and of the ids of a level and a family."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from task_gym.errors import ArgumentError, TaskIdError
from trace_gym.programs.builtin import CELLS, FAMILIES, LEVELS, NAMES, TASKS, generate, ids_of, split

LEVEL = st.none() | st.sampled_from(LEVELS)
FAMILY = st.none() | st.sampled_from(NAMES)
IDS = st.integers(0, TASKS - 1)


def test_the_table_is_frozen() -> None:
    first = "arithmetic strings lists dictionaries recursion closures classes generators"
    second = "exceptions bits sorting stdin dynamic matrices machines simulations"
    assert " ".join(NAMES) == f"{first} {second}"
    assert TASKS == 10**11
    assert CELLS == 160
    assert all(len(family.templates) >= 4 for family in FAMILIES)


@given(IDS)
def test_family_and_level_of_an_id(task_id: int) -> None:
    # cell = id mod 160, family = cell mod 16, level = cell div 16, from 1.
    cell = task_id % 160
    assert split(task_id) == (NAMES[cell % 16], cell // 16 + 1)


@given(LEVEL, FAMILY, st.integers(0, 10**10), st.integers(1, 20))
def test_positions_are_ids_in_order(level: int | None, family: str | None, start: int, count: int) -> None:
    ids = ids_of(level, family)
    start %= len(ids) - count
    listed = [ids[position] for position in range(start, start + count)]
    wanted = [
        task_id
        for task_id in range(listed[0], listed[-1] + 1)
        if level in (None, split(task_id)[1]) and family in (None, split(task_id)[0])
    ]
    assert listed == wanted


@given(LEVEL, FAMILY, IDS)
def test_membership(level: int | None, family: str | None, task_id: int) -> None:
    inside = level in (None, split(task_id)[1]) and family in (None, split(task_id)[0])
    assert (task_id in ids_of(level, family)) == inside


@given(LEVEL, FAMILY)
def test_how_many(level: int | None, family: str | None) -> None:
    # 10**11 is a multiple of 160: every cell has as many ids.
    ids = ids_of(level, family)
    assert len(ids) == TASKS // ((10 if level else 1) * (16 if family else 1))
    assert ids[-1] == ids[len(ids) - 1] < TASKS


def test_of_a_list_of_ids() -> None:
    # Level 1's ids are those whose remainder by 160 is below 16; "strings" is the second family.
    assert list(ids_of(1, among=[(150, 170), 5])) == [*range(160, 171), 5]
    assert list(ids_of(1, "strings", among=[(150, 170), 1])) == [161, 1]
    with pytest.raises(TaskIdError, match="17 was given, which holds no id of the kind asked for"):
        ids_of(1, among=[17])


@pytest.mark.parametrize("task_id", [-1, 10**11, 1.0, "7", True, None, [3]])
def test_what_is_no_task_id(task_id: Any) -> None:
    with pytest.raises(TaskIdError, match=r"was given, allowed: whole numbers 0 … 99999999999$"):
        generate(task_id)


def test_numpy_integers_are_task_ids() -> None:
    assert generate(np.int64(17)) == generate(17)  # type: ignore[arg-type]
    assert np.int64(17) in ids_of()


@pytest.mark.parametrize(
    ("level", "family", "message"),
    [
        (0, None, "level: 0 was given, allowed: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10"),
        (11, None, "level: 11 was given"),
        ("3", None, "level: '3' was given"),
        (None, "string", "family: 'string' was given.*did you mean 'strings'"),
        (None, 3, "family: 3 was given, allowed: 'arithmetic'"),
    ],
)
def test_bad_restrictions_are_named(level: Any, family: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        ids_of(level, family)
