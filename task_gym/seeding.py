"""Seeds, a portable shuffle, and a reseedable copy of NumPy's legacy random stream.

affinetes draws with ``numpy.random.RandomState``. Building one takes about 90 µs, reseeding one 4 µs, and
``choice`` spends most of its time on converting its argument. ``Stream`` draws what ``choice`` would
draw, from the same generator in the same order, several times faster.

Source: ``legacy`` parts of numpy/random/mtrand.pyx and src/distributions/distributions.c (masked rejection).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import TypeVar

import numpy as np

T = TypeVar("T")

SEED_LIMIT = 2**32
"""Every seed is below this, as NumPy's are."""

DRAWN_LIMIT = SEED_LIMIT - 200
"""Seeds that are drawn are below this: a protocol adds up to 152 and a seat, and the sum is a seed too."""


def shuffled(items: Sequence[T], below: Callable[[int], int], count: int | None = None) -> list[T]:
    """Returns the items in a random order that follows only from ``below``.

    Args:
        items: Not changed.
        below: Returns a whole number drawn uniformly from 0 … n - 1.
        count: The number of items to return; None for all.
    """
    left = list(items)
    return [left.pop(below(len(left))) for _ in range(len(left) if count is None else count)]


class Stream:
    """A random stream with the draws of ``numpy.random.RandomState(seed).choice``, bit for bit.

    Attributes:
        random_state: The RandomState itself, for library code that asks for one. It shares this stream's
            position.
    """

    __slots__ = ("_raw", "_uniform", "random_state")

    def __init__(self, seed: int = 0) -> None:
        generator = np.random.MT19937(0)
        self.random_state = np.random.RandomState(generator)
        self._raw = generator.random_raw
        self._uniform = self.random_state.random_sample
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Starts over as ``RandomState(seed)``, 0 <= seed < 2**32."""
        self.random_state.seed(seed)

    def below(self, n: int) -> int:
        """Returns ``RandomState.randint(0, n)`` for 1 <= n <= 2**32 - 1; n = 1 draws nothing, as there."""
        last = n - 1
        if last == 0:
            return 0
        mask = (1 << last.bit_length()) - 1
        value: int = self._raw() & mask
        while value > last:
            value = self._raw() & mask
        return value

    def choice(self, items: Sequence[T]) -> T:
        """Returns ``RandomState.choice(items)``."""
        return items[self.below(len(items))]

    def weighted(self, probabilities: tuple[float, ...]) -> int:
        """Returns the position that ``RandomState.choice(len(p), p=p)`` returns; p sums to 1."""
        return bisect_right(_cumulative(probabilities), self._uniform())


@lru_cache(maxsize=1024)
def _cumulative(probabilities: tuple[float, ...]) -> list[float]:
    """Returns the running sums divided by the last, in double precision and choice's order of operations."""
    sums = list(accumulate(probabilities))
    return [value / sums[-1] for value in sums]
