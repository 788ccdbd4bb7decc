"""Random numbers of compiled searches: SplitMix64 (Steele, Lea and Flood 2014), seeded by an address.

Numba's own generator is one per thread, so what it draws would depend on which thread a search runs in.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

Noise = npt.NDArray[np.uint64]
"""A generator: one number, (1,)."""


@njit(cache=True, nogil=True)
def mix(number):  # type: ignore[no-untyped-def]
    """Returns a number's hash, of 64 bits."""
    number = np.uint64(number)
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


@njit(cache=True, nogil=True)
def draw_below(noise, count):  # type: ignore[no-untyped-def]
    """Returns a whole number from 0 to ``count`` - 1, each equally often up to 2**-32 times ``count``."""
    noise[0] += np.uint64(0x9E3779B97F4A7C15)
    return np.int64(((mix(noise[0]) >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32))


def make_noise(*address: int) -> Noise:
    """Returns the generator of an address: whole numbers from 0."""
    number = np.uint64(0)
    for part in address:
        number = mix(np.uint64((int(number) + 0x9E3779B97F4A7C15 * (part + 1)) % 2**64))
    return np.array([number], dtype=np.uint64)
