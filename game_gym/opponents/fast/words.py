"""Words of 64 bits as sets of squares: operations for which processors have an instruction."""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.extending import intrinsic


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
