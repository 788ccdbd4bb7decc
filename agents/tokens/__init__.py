"""Sequences of tokens, and the places of distinct items: equal states of a batch are read once."""

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

Tokens = tuple[int, ...]

T = TypeVar("T")
R = TypeVar("R")

Positions = npt.NDArray[np.int64]
"""Positions of items, int64."""


class Index(Generic[T]):
    """Distinct items in order of first appearance; a call returns an item's index."""

    def __init__(self) -> None:
        self.items: list[T] = []
        self._where: dict[T, int] = {}

    def __call__(self, item: T) -> int:
        where = self._where.setdefault(item, len(self.items))
        if where == len(self.items):
            self.items.append(item)
        return where


def map_groups(
    items: Sequence[T], key: Callable[[T], Hashable], work: Callable[[list[T]], Sequence[R]]
) -> list[R]:
    """Returns the results of ``work``, called once per key with its items, in the items' order."""
    groups: dict[Hashable, list[int]] = {}
    for place, item in enumerate(items):
        groups.setdefault(key(item), []).append(place)
    results: dict[int, R] = {}
    for places in groups.values():
        results.update(zip(places, work([items[place] for place in places]), strict=True))
    return [results[place] for place in range(len(items))]


def spans(first: Positions, counts: Positions, rows: Positions) -> Positions:
    """Returns the places of the given rows' items, row after row, int64 (k,).

    Row r has the places ``first[r]`` to ``first[r] + counts[r] - 1``; rows may repeat.
    """
    row_counts = counts[rows]
    ends: npt.NDArray[np.int64] = np.cumsum(row_counts, dtype=np.int64)
    shift: npt.NDArray[np.int64] = np.repeat(first[rows] - (ends - row_counts), row_counts)
    return shift + np.arange(len(shift), dtype=np.int64)
