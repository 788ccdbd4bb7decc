"""Distinct items and their places: equal states of a batch are read once."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


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
