"""Sequences of tokens, and the places of distinct items: equal states of a batch are read once."""

from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

Tokens = tuple[int, ...]

T = TypeVar("T")

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


def spans(first: Positions, counts: Positions, rows: Positions) -> Positions:
    """Returns the places of the given rows' items, row after row, int64 (k,).

    Row r has the places ``first[r]`` to ``first[r] + counts[r] - 1``; rows may repeat.
    """
    own = counts[rows]
    ends: npt.NDArray[np.int64] = np.cumsum(own, dtype=np.int64)
    shift: npt.NDArray[np.int64] = np.repeat(first[rows] - (ends - own), own)
    return shift + np.arange(len(shift), dtype=np.int64)
