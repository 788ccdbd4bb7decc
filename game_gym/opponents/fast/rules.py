"""The interface of compiled rules: what each module of them defines, and what they share.

A module of ``game_gym.opponents.fast`` has the rules of one OpenSpiel game, compiled by Numba, for search.
Its states are arrays of whole numbers, and its actions are OpenSpiel's. It defines:

- ``STATE``: numbers of a state;
- ``ACTIONS``: the most legal actions that a state can have;
- ``read(state)``: an OpenSpiel state as an array of int64, (STATE,);
- ``PLAYER``: where a state has the seat to move, 0 or 1, or ``CHANCE``, or ``ENDED``;
- ``legal(state, actions)``: writes the legal actions, ascending, to an array of int32, (ACTIONS,), and
  returns how many there are;
- ``draw(state, actions, noise)``: returns a legal action, each equally often; it may overwrite ``actions``;
- ``apply(state, action)``: makes a move in place;
- ``result(state)``: the first seat's return at the end; the second's is its negative;
- ``utility(state)``, unless that is 1: the greatest return of the state's game.

The legal actions of chance are its outcomes. ``draw`` draws them as often as they are probable.

All but ``read`` are compiled with ``@njit(cache=True, nogil=True)``: they run without Python's lock, and a
process finds them compiled by an earlier one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit, types
from numba.extending import intrinsic

ENDED = -4
"""The player of a game that has ended; ``pyspiel.PlayerId.TERMINAL``."""

CHANCE = -1
"""The player if chance moves; ``pyspiel.PlayerId.CHANCE``."""

# -- words of 64 bits as sets of squares: operations for which processors have an instruction ----------------


@intrinsic
def count_bits(typing, word):  # type: ignore[no-untyped-def]
    """Returns how many bits are set."""
    return types.int64(types.uint64), lambda context, builder, signature, words: builder.ctpop(words[0])


@intrinsic
def find_lowest(typing, word):  # type: ignore[no-untyped-def]
    """Returns the place of the lowest bit that is set, of a word that is not 0."""

    def generate(context, builder, signature, words):  # type: ignore[no-untyped-def]
        return builder.cttz(words[0], context.get_constant(types.boolean, True))

    return types.int64(types.uint64), generate


@intrinsic
def find_highest(typing, word):  # type: ignore[no-untyped-def]
    """Returns the place of the highest bit that is set, of a word that is not 0."""

    def generate(context, builder, signature, words):  # type: ignore[no-untyped-def]
        zeros = builder.ctlz(words[0], context.get_constant(types.boolean, True))
        return builder.sub(context.get_constant(types.int64, 63), zeros)

    return types.int64(types.uint64), generate


@intrinsic
def swap_bytes(typing, word):  # type: ignore[no-untyped-def]
    """Returns a word with its bytes in reverse order: of a board of eight columns, the rows."""
    return types.uint64(types.uint64), lambda context, builder, signature, words: builder.bswap(words[0])


@njit(cache=True, nogil=True)
def pick_bit(word, rank):  # type: ignore[no-untyped-def]
    """Returns the place of the bit that has so many lower ones."""
    word = np.uint64(word)
    for _ in range(rank):
        word &= word - np.uint64(1)
    return find_lowest(word)


# -- random numbers: SplitMix64 (Steele, Lea and Flood 2014), seeded by an address ---------------------------

# Numba's own generator is one per thread, so what it draws would depend on which thread a search runs in.
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
