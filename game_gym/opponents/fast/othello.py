"""Compiled rules of othello, on two words of 64 bits.

Square ``s`` is row ``s // 8`` and column ``s % 8``, as in OpenSpiel's actions; action 64 passes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from game_gym.opponents.fast.rules import ENDED, count_bits, draw_below, pick_bit

STATE = 3
"""The discs of the first seat (black), those of the second, and the seat to move or ``ENDED``."""

PLAYER = 2

ACTIONS = 64

PASS = 64

_NOT_LEFT, _NOT_RIGHT, _ALL = 0xFEFEFEFEFEFEFEFE, 0x7F7F7F7F7F7F7F7F, 0xFFFFFFFFFFFFFFFF

# By how many bits a direction and its opposite move discs, and the squares that each direction reaches:
# right, left, down, up, down-right, up-left, down-left and up-right.
_SIZES = np.array([1, 8, 9, 7], dtype=np.uint64)
_KEPT = np.array(
    [_NOT_LEFT, _NOT_RIGHT, _ALL, _ALL, _NOT_LEFT, _NOT_RIGHT, _NOT_RIGHT, _NOT_LEFT], dtype=np.uint64
)


def read(state: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Returns a state of OpenSpiel's othello."""
    text = "".join(line[2:18:2] for line in state.to_string().splitlines() if line[:1].isdigit())
    discs = [sum(1 << square for square, disc in enumerate(text) if disc == seat) for seat in ("x", "o")]
    player = ENDED if state.is_terminal() else state.current_player()
    return np.array([*(np.int64(np.uint64(one)) for one in discs), player], dtype=np.int64)


@njit(cache=True, nogil=True)
def _shift(discs, direction):  # type: ignore[no-untyped-def]
    """Moves all discs by one square in one of eight directions; those at the edge leave the board."""
    size, kept = _SIZES[direction >> 1], _KEPT[direction]
    return (discs >> size) & kept if direction & 1 else (discs << size) & kept


@njit(cache=True, nogil=True)
def _moves(mover_discs, other):  # type: ignore[no-untyped-def]
    """Returns the squares on which a disc turns others over."""
    empty, squares = ~(mover_discs | other), np.uint64(0)
    for direction in range(8):
        line = _shift(mover_discs, direction) & other
        for _ in range(5):
            line |= _shift(line, direction) & other
        squares |= _shift(line, direction) & empty
    return squares


@njit(cache=True, nogil=True)
def _find_turned(mover_discs, other, disc):  # type: ignore[no-untyped-def]
    """Returns the discs that a new disc turns over."""
    discs = np.uint64(0)
    for direction in range(8):
        line = _shift(disc, direction) & other
        for _ in range(5):
            line |= _shift(line, direction) & other
        if _shift(line, direction) & mover_discs:
            discs |= line
    return discs


@njit(cache=True, nogil=True)
def _open(state):  # type: ignore[no-untyped-def]
    seat = state[PLAYER]
    return _moves(np.uint64(state[seat]), np.uint64(state[1 - seat]))


@njit(cache=True, nogil=True)
def legal(state, actions):  # type: ignore[no-untyped-def]
    if state[PLAYER] == ENDED:
        return 0
    squares, count = _open(state), 0
    for square in range(64):
        if (squares >> np.uint64(square)) & np.uint64(1):
            actions[count] = square
            count += 1
    if count == 0:
        actions[0] = PASS
        count = 1
    return count


@njit(cache=True, nogil=True)
def draw(state, actions, noise):  # type: ignore[no-untyped-def]
    squares = _open(state)
    count = count_bits(squares)
    if count == 0:
        return PASS
    return pick_bit(squares, draw_below(noise, count))


@njit(cache=True, nogil=True)
def apply(state, action):  # type: ignore[no-untyped-def]
    seat = state[PLAYER]
    if action != PASS:
        mover_discs, other = np.uint64(state[seat]), np.uint64(state[1 - seat])
        disc = np.uint64(1) << np.uint64(action)
        turned = _find_turned(mover_discs, other, disc)
        mover_discs, other = mover_discs | disc | turned, other & ~turned
        state[seat], state[1 - seat] = np.int64(mover_discs), np.int64(other)
        if _moves(mover_discs, other) == 0 and _moves(other, mover_discs) == 0:
            state[PLAYER] = ENDED
            return
    state[PLAYER] = 1 - seat


@njit(cache=True, nogil=True)
def result(state):  # type: ignore[no-untyped-def]
    difference = count_bits(np.uint64(state[0])) - count_bits(np.uint64(state[1]))
    return 1.0 if difference > 0 else (-1.0 if difference < 0 else 0.0)
