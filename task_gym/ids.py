"""Sets of task ids, kept as ranges and never enumerated."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from task_gym.arguments import check_whole
from task_gym.errors import TaskIdError, quote

TASK_LIMIT = 2**62
"""Task ids are below this, so that any set of them can be drawn from with 64-bit integers."""


def check_task_id(task_id: Any, limit: int) -> int:
    """Returns ``task_id`` as an int, or raises TaskIdError unless it is in 0 … limit - 1."""
    return check_whole("task id", task_id, limit, TaskIdError)


class IdRanges:
    """Task ids given as a list of ids and (first, last) ranges, both ends included.

    Drawing is uniform over the ids; an id that is named twice is drawn twice as often.

    Args:
        task_ids: The list.
        limit: Ids are below this.
        modulus: Divides an id; by default every id belongs to the set.
        residues: Only ids with one of these remainders belong to the set: ascending, in 0 … modulus - 1.

    Attributes:
        ranges: The ranges as given, in order; an id by itself is a range of one.

    Raises:
        TaskIdError: no list of ids and ranges, or none of the ids named has a wanted remainder.
    """

    def __init__(
        self, task_ids: Any, limit: int, *, modulus: int = 1, residues: Sequence[int] = (0,)
    ) -> None:
        self._limit, self._modulus, self._residues = limit, modulus, residues
        self.ranges: list[tuple[int, int]] = _read_ranges(task_ids, limit)
        # Running number of members up to and including each range.
        self._ends = list(
            accumulate(self._below(last + 1) - self._below(first) for first, last in self.ranges)
        )
        size = self._ends[-1]
        if not size:
            raise TaskIdError(f"task_ids: {self} was given, which holds no id of the kind asked for")
        if size > limit:  # which also keeps len() in its range
            raise TaskIdError(f"task_ids: {quote(task_ids)} was given, allowed: {limit} ids in all")

    def draw(self, generator: Callable[[], np.random.Generator]) -> int:
        """Returns one of the ids, uniformly; the generator is not called if there is only one id."""
        return self[0 if len(self) == 1 else int(generator().integers(len(self)))]

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, position: int) -> int:
        """Returns the id at a position, in the order given; a negative one counts from the end."""
        position = range(len(self))[position]
        index = bisect_right(self._ends, position)
        before = self._ends[index - 1] if index else 0
        block, rank = divmod(self._below(self.ranges[index][0]) + position - before, len(self._residues))
        return block * self._modulus + self._residues[rank]

    def __iter__(self) -> Iterator[int]:
        return map(self.__getitem__, range(len(self)))

    def __contains__(self, task_id: Any) -> bool:
        wanted = check_task_id(task_id, self._limit)
        return wanted % self._modulus in self._residues and any(
            first <= wanted <= last for first, last in self.ranges
        )

    def __str__(self) -> str:
        return ", ".join(str(first) if first == last else f"{first} … {last}" for first, last in self.ranges)

    def _below(self, task_id: int) -> int:
        """Returns how many ids of the wanted remainders are less than this one."""
        block, remainder = divmod(task_id, self._modulus)
        return block * len(self._residues) + bisect_left(self._residues, remainder)


def _read_ranges(task_ids: Any, limit: int) -> list[tuple[int, int]]:
    if not isinstance(task_ids, list) or not task_ids:
        raise TaskIdError(
            f"task_ids: {quote(task_ids)} was given, allowed: a non-empty list of ids and (first, last) "
            "ranges"
        )
    ranges = []
    for entry in task_ids:
        if isinstance(entry, (list, tuple)):
            bounds = [check_task_id(bound, limit) for bound in entry]
            if len(bounds) != 2 or bounds[0] > bounds[1]:
                raise TaskIdError(
                    f"task_ids: range {entry!r} was given, allowed: (first, last) with first <= last"
                )
            ranges.append((bounds[0], bounds[1]))
        else:
            only = check_task_id(entry, limit)
            ranges.append((only, only))
    return ranges
