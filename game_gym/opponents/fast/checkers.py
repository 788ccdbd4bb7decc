"""Compiled rules of checkers, on words of 64 bits: one bit per dark square.

The bits go row by row from the top. One unused bit follows every second row. So a step in one direction is
the same number of bits from any square, and a step over the edge reaches no square. With 8 columns:

    row 0   . 0 . 1 . 2 . 3
    row 1   4 . 5 . 6 . 7 .    8 is unused
    row 2   . 9 . 10 . 11 . 12

OpenSpiel's action is ((row * columns + column) * 4 + direction) * 2, and 1 more if it is a jump.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from game_gym.opponents.fast.rules import ENDED, count_bits, draw_below, pick_bit

STATE = 13
"""The pieces of the first seat (o), those of the second, and the numbers below.

The state includes the moves of the seat to move: ``apply`` has to find out whether there are any, and
``draw`` draws one of them.
"""

# The kings of both seats; the seat to move or ``ENDED``; moves in a row without a capture; the first seat's
# return, 0 before the end.
_KINGS, PLAYER, _QUIET, _RETURN = 2, 3, 4, 5
# 1 if the moves are jumps; the pieces that can move up-left, and after them those of the other directions.
_JUMPS, _MOVES = 6, 7
# Half the columns; all squares.
_HALF, _BOARD = 11, 12

ACTIONS = 48  # twelve kings, each in four directions

_MOST_QUIET = 40  # OpenSpiel's kMaxMovesWithoutCapture

_ROWS, _COLUMNS = (8, 10, 12), (6, 8)


def _bit(row: int, column: int, columns: int) -> int:
    """Returns the bit of a dark square."""
    return (row * columns + column) // 2 + row // 2


def _tables() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Returns each square's bit, (5, 96), and each bit's square, (5, 64): one row per half the columns."""
    bits, squares = np.zeros((5, 96), dtype=np.int64), np.zeros((5, 64), dtype=np.int64)
    for columns in _COLUMNS:
        for row in range(max(_ROWS)):
            for column in range(1 - row % 2, columns, 2):
                bit = _bit(row, column, columns)
                bits[columns // 2, row * columns + column] = bit
                squares[columns // 2, bit] = row * columns + column
    return bits, squares


_BITS, _SQUARES = _tables()


def read(state: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Returns a state of OpenSpiel's checkers."""
    parameters = state.get_game().get_parameters()
    rows, columns = parameters["rows"], parameters["columns"]
    compiled = np.zeros(STATE, dtype=np.int64)
    compiled[_HALF] = columns // 2
    for row, line in enumerate(state.to_string().splitlines()[:rows]):
        for column in range(1 - row % 2, columns, 2):
            square, mark = 1 << _bit(row, column, columns), line[-columns:][column]
            compiled[_BOARD] |= square
            compiled[0] |= square if mark in "o8" else 0
            compiled[1] |= square if mark in "+*" else 0
            compiled[_KINGS] |= square if mark in "8*" else 0
    moves = state.full_history()
    for move in reversed(moves):
        if move.action % 2:
            break
        compiled[_QUIET] += 1
    if state.is_terminal():
        compiled[PLAYER], compiled[_RETURN] = ENDED, state.returns()[0]
        return compiled
    seat = compiled[PLAYER] = state.current_player()
    if moves and moves[-1].player == seat:
        square, direction = moves[-1].action // 8, moves[-1].action // 2 % 4
        bit = _BITS[columns // 2, square] + 2 * _step(compiled, direction)
        _write_jumps(compiled, seat, np.uint64(1 << int(bit)))
    else:
        _write_moves(compiled, seat)
    return compiled


@njit(cache=True, nogil=True)
def _step(state, direction):  # type: ignore[no-untyped-def]
    """Returns by how many bits a piece moves: up-left, up-right, down-right or down-left."""
    size = state[_HALF] + 1 - (direction & 1)
    return -size if direction < 2 else size


@njit(cache=True, nogil=True)
def _write_jumps(state, seat, pieces):  # type: ignore[no-untyped-def]
    """Writes in which directions some pieces of a seat can jump; returns whether they can at all."""
    left, right = np.uint64(state[_HALF] + 1), np.uint64(state[_HALF])  # going up
    other = np.uint64(state[1 - seat])
    empty = np.uint64(state[_BOARD]) & ~(np.uint64(state[seat]) | other)
    kings = pieces & np.uint64(state[_KINGS])
    up, down = (pieces, kings) if seat == 0 else (kings, pieces)
    up_left = up & (((empty << left) & other) << left)
    up_right = up & (((empty << right) & other) << right)
    down_right = down & (((empty >> left) & other) >> left)
    down_left = down & (((empty >> right) & other) >> right)
    state[_MOVES], state[_MOVES + 1] = np.int64(up_left), np.int64(up_right)
    state[_MOVES + 2], state[_MOVES + 3] = np.int64(down_right), np.int64(down_left)
    state[_JUMPS] = (up_left | up_right | down_right | down_left) != 0
    return state[_JUMPS] == 1


@njit(cache=True, nogil=True)
def _write_moves(state, seat):  # type: ignore[no-untyped-def]
    """Writes a seat's moves, which are jumps if there are any; returns whether it can move."""
    pieces = np.uint64(state[seat])
    if _write_jumps(state, seat, pieces):
        return True
    left, right = np.uint64(state[_HALF] + 1), np.uint64(state[_HALF])
    empty = np.uint64(state[_BOARD]) & ~(pieces | np.uint64(state[1 - seat]))
    kings = pieces & np.uint64(state[_KINGS])
    up, down = (pieces, kings) if seat == 0 else (kings, pieces)
    up_left, up_right = up & (empty << left), up & (empty << right)
    down_right, down_left = down & (empty >> left), down & (empty >> right)
    state[_MOVES], state[_MOVES + 1] = np.int64(up_left), np.int64(up_right)
    state[_MOVES + 2], state[_MOVES + 3] = np.int64(down_right), np.int64(down_left)
    return (up_left | up_right | down_right | down_left) != 0


@njit(cache=True, nogil=True)
def legal(state, actions):  # type: ignore[no-untyped-def]
    if state[PLAYER] == ENDED:
        return 0
    count = 0
    for bit in range(64):
        for direction in range(4):
            if (state[_MOVES + direction] >> bit) & 1:
                actions[count] = (_SQUARES[state[_HALF], bit] * 4 + direction) * 2 + state[_JUMPS]
                count += 1
    return count


@njit(cache=True, nogil=True)
def draw(state, actions, noise):  # type: ignore[no-untyped-def]
    first, second = np.uint64(state[_MOVES]), np.uint64(state[_MOVES + 1])
    third, fourth = np.uint64(state[_MOVES + 2]), np.uint64(state[_MOVES + 3])
    one = count_bits(first)
    two = one + count_bits(second)
    three = two + count_bits(third)
    place = draw_below(noise, three + count_bits(fourth))
    # Without branches, which the processor would guess wrong.
    direction = np.int64(place >= one) + np.int64(place >= two) + np.int64(place >= three)
    place -= max(one * (place >= one), two * (place >= two), three * (place >= three))
    bit = pick_bit(state[_MOVES + direction], place)
    return (_SQUARES[state[_HALF], bit] * 4 + direction) * 2 + state[_JUMPS]


@njit(cache=True, nogil=True)
def apply(state, action):  # type: ignore[no-untyped-def]
    seat = state[PLAYER]
    bit, step = _BITS[state[_HALF], action >> 3], _step(state, (action >> 1) & 3)
    jumps = action & 1
    start, end = np.int64(1) << bit, np.int64(1) << (bit + step + step * jumps)
    state[seat] ^= start | end
    kings = state[_KINGS]
    is_king = (kings & start) != 0
    # Row 0 has the lowest bits. A man never reaches the row behind it, so both outer rows crown.
    is_crowned = not is_king and (end < (1 << state[_HALF]) or (end << state[_HALF]) > state[_BOARD])
    kings = (kings & ~start) | (end if is_king or is_crowned else 0)
    if jumps:
        taken = np.int64(1) << (bit + step)
        state[1 - seat] ^= taken
        state[_KINGS] = kings & ~taken
        state[_QUIET] = 0
        if not is_crowned and _write_jumps(state, seat, np.uint64(end)):
            return
    else:
        state[_KINGS] = kings
        state[_QUIET] += 1
    if state[_QUIET] < _MOST_QUIET and _write_moves(state, 1 - seat):
        state[PLAYER] = 1 - seat
        return
    if state[_QUIET] < _MOST_QUIET:
        state[_RETURN] = 1 - 2 * seat
    else:
        state[_JUMPS : _MOVES + 4] = 0
    state[PLAYER] = ENDED


@njit(cache=True, nogil=True)
def result(state):  # type: ignore[no-untyped-def]
    return float(state[_RETURN])
