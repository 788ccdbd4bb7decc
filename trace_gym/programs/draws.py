"""A stream of random choices that is the same on every Python and every platform.

`random.Random` has always given the same bits for the same whole-number seed. What it makes of them
(`randint`, `sample`, `shuffle`) may change between versions, so that part stands here.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Draws:
    """Random choices that follow from ``seed``, a whole number of any size, not negative."""

    def __init__(self, seed: int) -> None:
        self._bits = random.Random(seed).getrandbits

    def below(self, n: int) -> int:
        """Uniform over 0 … n - 1 (to n parts in 2**64); n is at least 1. Each call draws as many bits."""
        if n < 1:
            raise ValueError(f"draws below n: {n} was given, allowed: 1 and more")
        return self._bits(64) * n >> 64

    def fork(self) -> Draws:
        """A stream of its own: however much is drawn from it, what follows here stays the same."""
        return Draws(self._bits(64))

    def between(self, low: int, high: int) -> int:
        """Uniform over low … high, both included."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        """True ``percent`` times in a hundred."""
        return self.below(100) < percent

    def choice(self, items: Sequence[Item]) -> Item:
        """One of them, uniformly."""
        return items[self.below(len(items))]

    def sample(self, items: Sequence[Item], count: int) -> list[Item]:
        """``count`` of them at different positions, in random order; more begin with the same."""
        left = list(items)
        if count > len(left):
            raise ValueError(f"sample: {count} of {len(left)} were asked for")
        stream = self.fork()
        return [left.pop(stream.below(len(left))) for _ in range(count)]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """All of them, in random order."""
        return self.sample(items, len(items))

    def numbers(self, count: int, low: int, high: int) -> list[int]:
        """``count`` whole numbers between ``low`` and ``high``, both included; more begin with the same."""
        stream = self.fork()
        return [stream.between(low, high) for _ in range(count)]

    def picks(self, items: Sequence[Item], count: int) -> list[Item]:
        """``count`` of them, each any of them; more begin with the same."""
        stream = self.fork()
        return [stream.choice(items) for _ in range(count)]
