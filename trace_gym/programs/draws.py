"""A stream of random choices that is the same on every Python and every platform.

``random.Random`` has always given the same bits for the same whole-number seed. Its ``randint``, ``sample``
and ``shuffle`` may change between versions, so this module has its own.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from task_gym.seeding import shuffled

Item = TypeVar("Item")


class Draws:
    """A stream of random choices.

    Args:
        seed: A whole number from 0 on, of any size.
    """

    def __init__(self, seed: int) -> None:
        self._bits = random.Random(seed).getrandbits

    def below(self, n: int) -> int:
        """Returns a number from 0 to n - 1, uniform to n parts in 2**64. Each call draws 64 bits."""
        return self._bits(64) * n >> 64

    def fork(self) -> Draws:
        """Returns a separate stream. Draws from it do not change the later draws from this stream."""
        return Draws(self._bits(64))

    def between(self, low: int, high: int) -> int:
        """Returns a number from ``low`` to ``high``, both included, uniformly."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        """Returns True with a probability of ``percent`` percent."""
        return self.below(100) < percent

    def choice(self, items: Sequence[Item]) -> Item:
        """Returns one item, uniformly."""
        return items[self.below(len(items))]

    def sample(self, items: Sequence[Item], count: int) -> list[Item]:
        """Returns ``count`` items of different positions in random order. A larger count begins alike."""
        if count > len(items):
            raise ValueError(f"sample: {count} of {len(items)} were asked for")
        return shuffled(items, self.fork().below, count)

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """Returns all items, in random order."""
        return self.sample(items, len(items))

    def numbers(self, count: int, low: int, high: int) -> list[int]:
        """Returns ``count`` numbers from ``low`` to ``high``, both included. A larger count begins alike."""
        stream = self.fork()
        return [stream.between(low, high) for _ in range(count)]

    def picks(self, items: Sequence[Item], count: int) -> list[Item]:
        """Returns ``count`` items, drawn with replacement. A larger count begins alike."""
        stream = self.fork()
        return [stream.choice(items) for _ in range(count)]
