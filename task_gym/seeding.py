"""A reseedable copy of NumPy's legacy random stream.

affinetes draws with ``numpy.random.RandomState``. Building one takes about 90 µs, reseeding one 4 µs, and
``choice`` spends most of its time on converting its argument. :class:`Stream` draws what ``choice`` would
draw, from the same generator in the same order, several times faster.

Source: ``legacy`` parts of numpy/random/mtrand.pyx and src/distributions/distributions.c (masked rejection).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from task_gym.errors import SeedError

T = TypeVar("T")

#: Seeds are drawn below this, so that what a protocol adds to one (100 at most, and a seat) fits 32 bits.
SEED_LIMIT = 2**32 - 200


def check_seed(seed: Any) -> int:
    """A seed as an int, or a SeedError."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < SEED_LIMIT:
        raise SeedError(f"seed: {seed!r} was given, allowed: whole numbers 0 … {SEED_LIMIT - 1}")
    return int(seed)


class Stream:
    """Draws equal to ``numpy.random.RandomState(seed)``'s ``choice``, bit for bit."""

    __slots__ = ("_raw", "_uniform", "random_state")

    def __init__(self, seed: int = 0) -> None:
        generator = np.random.MT19937(0)
        #: The RandomState itself, for library code that asks for one; it shares this stream's position.
        self.random_state = np.random.RandomState(generator)
        self._raw = generator.random_raw
        self._uniform = self.random_state.random_sample
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Start over as ``RandomState(seed)``, 0 <= seed < 2**32."""
        self.random_state.seed(seed)

    def below(self, n: int) -> int:
        """``RandomState.randint(0, n)`` for 1 <= n <= 2**32 - 1; n = 1 draws nothing, as there."""
        last = n - 1
        if last == 0:
            return 0
        mask = (1 << last.bit_length()) - 1
        value: int = self._raw() & mask
        while value > last:
            value = self._raw() & mask
        return value

    def choice(self, items: Sequence[T]) -> T:
        """``RandomState.choice(items)``."""
        return items[self.below(len(items))]

    def weighted(self, probabilities: tuple[float, ...]) -> int:
        """The position that ``RandomState.choice(len(p), p=p)`` returns; p sums to 1."""
        return bisect_right(_cumulative(probabilities), self._uniform())


@lru_cache(maxsize=1024)
def _cumulative(probabilities: tuple[float, ...]) -> list[float]:
    """Running sums divided by the last one, in double precision and in choice's order of operations."""
    total, sums = 0.0, []
    for probability in probabilities:
        total += probability
        sums.append(total)
    return [value / total for value in sums]
