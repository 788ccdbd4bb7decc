"""Compiled rules of chess, on words of 64 bits.

The board is as the seat to move sees it: its own pieces start on rows 0 and 1, and every move turns the
board over. OpenSpiel numbers its actions from that view too. Square ``s`` is row ``s // 8`` and file
``s % 8``, and bit ``s`` of a word. Seat 1 is white and moves first; seat 0 is black.

A state is, in this order:

- the mover's pieces, and the other seat's;
- the pawns, knights, bishops, rooks, queens and kings of both seats;
- the seat to move, or ``ENDED``;
- rights to castle: 1 and 2 are the mover's towards files a and h, 4 and 8 the other seat's;
- the square on which a pawn can be captured en passant, as a word of one bit, or 0;
- the moves since the last capture or pawn move;
- whether the mover's king is attacked;
- the first seat's return, if the game has ended;
- the hash of the placed pieces;
- how many hashes follow, and the hashes of the positions since the last capture or pawn move, oldest first.

The game is drawn at 100 moves without a capture or a pawn move, so no more than 101 hashes are needed. Hashes
two places apart have the same seat to move, and only these are compared. Numbers after the last hash are left
over from earlier positions.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from game_gym.opponents.fast.rules import (
    ENDED,
    count_bits,
    draw_below,
    find_highest,
    find_lowest,
    mix,
    pick_bit,
    swap_bytes,
)

_OWN, _OTHER = 0, 1
_PAWNS, _KNIGHTS, _BISHOPS, _ROOKS, _QUEENS, _KINGS = range(2, 8)
PLAYER, _CASTLING, _EN_PASSANT, _QUIET, _CHECKED, _RESULT, _HASH, _COUNT, _HASHES = range(8, 17)

_QUIET_LIMIT = 100

STATE = _HASHES + _QUIET_LIMIT + 1

ACTIONS = 218
"""The most moves of any position that a game can reach."""

CASTLE_LEFT, CASTLE_RIGHT = 4672, 4673

_TARGETS = 73
"""OpenSpiel's actions per square of origin: 9 promotions to rook, bishop or knight, and 64 directed steps."""

_ONE = np.uint64(1)
_NOT_FILE_A, _NOT_FILE_H = np.uint64(0xFEFEFEFEFEFEFEFE), np.uint64(0x7F7F7F7F7F7F7F7F)
_ROW_2, _LAST_ROW = np.uint64(0xFF0000), np.uint64(0xFF00000000000000)
_DARK = np.uint64(0xAA55AA55AA55AA55)
_KNIGHT_STEPS = ((-2, -1), (-2, 1), (-1, -2), (-1, 2), (2, -1), (2, 1), (1, -2), (1, 2))
_KING_STEPS = ((1, 0), (1, 1), (1, -1), (0, 1), (0, -1), (-1, 1), (-1, 0), (-1, -1))

# -- tables --------------------------------------------------------------------------------------------------


def _tabulate_reach(steps: tuple[tuple[int, int], ...], most: int) -> npt.NDArray[np.uint64]:
    """Returns the squares that up to ``most`` equal steps reach on an empty board: words by square, (64,)."""
    words = [0] * 64
    for square, (right, up), times in product(range(64), steps, range(1, most + 1)):
        file, row = square % 8 + times * right, square // 8 + times * up
        if 0 <= file < 8 and 0 <= row < 8:
            words[square] |= 1 << (8 * row + file)
    return np.array(words, dtype=np.uint64)


_RANKS = _tabulate_reach(((1, 0), (-1, 0)), 7)
_FILES = _tabulate_reach(((0, 1), (0, -1)), 7)
_RISING = _tabulate_reach(((1, 1), (-1, -1)), 7)
_FALLING = _tabulate_reach(((1, -1), (-1, 1)), 7)
_LINES = _RANKS | _FILES | _RISING | _FALLING
_KNIGHT = _tabulate_reach(_KNIGHT_STEPS, 1)
_KING = _tabulate_reach(_KING_STEPS, 1)


def _list_steps() -> list[tuple[int, int]]:
    """Returns OpenSpiel's 64 directed steps, as files and rows."""
    lengths = [*range(-7, 0), *range(1, 8)]
    directions = ((0, 1), (1, 0), (1, 1), (1, -1))
    lines = [(length * right, length * up) for right, up in directions for length in lengths]
    return [*lines, *_KNIGHT_STEPS]


_STEPS = np.array([8 * up + right for right, up in _list_steps()], dtype=np.int64)
"""By step, the difference of the squares."""

_CODES = np.zeros(240, dtype=np.int64)
"""The place of a step in an origin's actions, by the difference of squares on a board of 16 files, + 119."""
for _code, (_right, _up) in enumerate(_list_steps()):
    _CODES[16 * _up + _right + 119] = 9 + _code

_RIGHTS = np.full(64, 15, dtype=np.int64)
"""The rights to castle that a move from or to a square leaves: a king moves, a rook moves or is taken."""
_RIGHTS[[0, 4, 7, 56, 63]] = 14, 12, 13, 11, 7


# -- words ---------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _bit(square):  # type: ignore[no-untyped-def]
    return _ONE << np.uint64(square)


@njit(cache=True, nogil=True)
def _slide(occupied, bit, line):  # type: ignore[no-untyped-def]
    """Returns the squares of a line up to the first piece on each side, that piece included."""
    lower, upper = occupied & line & (bit - _ONE), occupied & line & ~(bit - _ONE)
    nearest = upper & (~upper + _ONE)
    return line & ((nearest << _ONE) - _bit(find_highest(lower | _ONE)))


@njit(cache=True, nogil=True)
def _see_straight(occupied, square):  # type: ignore[no-untyped-def]
    """Returns the squares that a rook sees."""
    bit = _bit(square)
    return _slide(occupied, bit, _RANKS[square]) | _slide(occupied, bit, _FILES[square])


@njit(cache=True, nogil=True)
def _see_diagonal(occupied, square):  # type: ignore[no-untyped-def]
    """Returns the squares that a bishop sees."""
    bit = _bit(square)
    return _slide(occupied, bit, _RISING[square]) | _slide(occupied, bit, _FALLING[square])


# -- moves ---------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _is_attacked(state, square, occupied, others):  # type: ignore[no-untyped-def]
    """Returns whether one of the other seat's pieces in ``others`` attacks a square of the mover."""
    bit = _bit(square)
    pawns = ((bit << np.uint64(7)) & _NOT_FILE_H) | ((bit << np.uint64(9)) & _NOT_FILE_A)
    queens = np.uint64(state[_QUEENS])
    near = (
        (pawns & np.uint64(state[_PAWNS]))
        | (_KNIGHT[square] & np.uint64(state[_KNIGHTS]))
        | (_KING[square] & np.uint64(state[_KINGS]))
    )
    if near & others:
        return True
    straight, diagonal = (
        (np.uint64(state[_ROOKS]) | queens) & others,
        (np.uint64(state[_BISHOPS]) | queens) & others,
    )
    if (_RANKS[square] | _FILES[square]) & straight and _see_straight(occupied, square) & straight:
        return True
    if (_RISING[square] | _FALLING[square]) & diagonal and _see_diagonal(occupied, square) & diagonal:  # noqa: SIM103
        return True
    return False


@njit(cache=True, nogil=True)
def _is_safe(state, start, end):  # type: ignore[no-untyped-def]
    """Returns whether a move that is no castling leaves the mover's king unattacked."""
    mover_pieces, other = np.uint64(state[_OWN]), np.uint64(state[_OTHER])
    king = mover_pieces & np.uint64(state[_KINGS])
    passing = end == np.uint64(state[_EN_PASSANT]) and start & np.uint64(state[_PAWNS]) != 0
    if start == king:
        king = end
    elif state[_CHECKED] == 0 and not passing and not start & _LINES[find_lowest(king)]:
        return True
    other &= ~(end >> np.uint64(8) if passing else end)
    mover_pieces = (mover_pieces & ~start) | end
    return not _is_attacked(state, find_lowest(king), mover_pieces | other, other)


@njit(cache=True, nogil=True)
def _find_castlings(state):  # type: ignore[no-untyped-def]
    """Returns the legal castlings: 1 towards file a, 2 towards file h, 3 for both."""
    rights = state[_CASTLING] & 3
    if rights == 0 or state[_CHECKED]:
        return 0
    other = np.uint64(state[_OTHER])
    occupied, castlings = np.uint64(state[_OWN]) | other, 0
    if rights & 1 and not occupied & np.uint64(0x0E):  # noqa: SIM102
        if not _is_attacked(state, 2, occupied, other) and not _is_attacked(state, 3, occupied, other):
            castlings |= 1
    if rights & 2 and not occupied & np.uint64(0x60):  # noqa: SIM102
        if not _is_attacked(state, 5, occupied, other) and not _is_attacked(state, 6, occupied, other):
            castlings |= 2
    return castlings


@njit(cache=True, nogil=True)
def _find_targets(state, square):  # type: ignore[no-untyped-def]
    """Returns the squares to which a piece of the mover can go, castling and the king's safety apart."""
    bit, mover_pieces, other = _bit(square), np.uint64(state[_OWN]), np.uint64(state[_OTHER])
    occupied, targets = mover_pieces | other, np.uint64(0)
    if bit & np.uint64(state[_PAWNS]):
        once = (bit << np.uint64(8)) & ~occupied
        twice = ((once & _ROW_2) << np.uint64(8)) & ~occupied
        aside = ((bit << np.uint64(7)) & _NOT_FILE_H) | ((bit << np.uint64(9)) & _NOT_FILE_A)
        return once | twice | (aside & (other | np.uint64(state[_EN_PASSANT])))
    if bit & np.uint64(state[_KNIGHTS]):
        targets = _KNIGHT[square]
    elif bit & np.uint64(state[_KINGS]):
        targets = _KING[square]
    else:
        if bit & (np.uint64(state[_ROOKS]) | np.uint64(state[_QUEENS])):
            targets |= _see_straight(occupied, square)
        if bit & (np.uint64(state[_BISHOPS]) | np.uint64(state[_QUEENS])):
            targets |= _see_diagonal(occupied, square)
    return targets & ~mover_pieces


@njit(cache=True, nogil=True)
def _encode(start, end):  # type: ignore[no-untyped-def]
    """Returns the action of a move between two squares; a pawn becomes a queen on the last row."""
    code = _CODES[(end + (end & 56)) - (start + (start & 56)) + 119]
    return _TARGETS * (8 * (start & 7) + (start >> 3)) + code


@njit(cache=True, nogil=True)
def _encode_promotion(start, end, piece):  # type: ignore[no-untyped-def]
    """Returns the action of a promotion to a rook, bishop or knight: 0, 1 or 2."""
    step = end - start
    direction = 0 if step == 8 else (1 if step == 9 else 2)
    return _TARGETS * (8 * (start & 7) + (start >> 3)) + 3 * piece + direction


@njit(cache=True, nogil=True)
def _can_move(state):  # type: ignore[no-untyped-def]
    """Returns whether the mover has a legal move. (Who can castle can also move the king by one square.)"""
    mover_pieces = np.uint64(state[_OWN])
    if state[_CHECKED] == 0:
        # A piece in no line with its king can leave its square.
        free = mover_pieces & ~_LINES[find_lowest(mover_pieces & np.uint64(state[_KINGS]))]
        pawns = free & np.uint64(state[_PAWNS])
        if (pawns << np.uint64(8)) & ~(mover_pieces | np.uint64(state[_OTHER])):
            return True
    pieces = mover_pieces
    while pieces:
        square = find_lowest(pieces)
        targets = _find_targets(state, square)
        while targets:
            if _is_safe(state, _bit(square), targets & (~targets + _ONE)):
                return True
            targets &= targets - _ONE
        pieces &= pieces - _ONE
    return False


# -- the rules -----------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def legal(state, actions):  # type: ignore[no-untyped-def]
    if state[PLAYER] == ENDED:
        return 0
    mover_pieces, pawns, count = np.uint64(state[_OWN]), np.uint64(state[_PAWNS]), 0
    for place in range(64):  # in the order of the actions: file by file
        square = 8 * (place & 7) + (place >> 3)
        if not mover_pieces & _bit(square):
            continue
        begin, targets = count, _find_targets(state, square)
        while targets:
            end = find_lowest(targets)
            targets &= targets - _ONE
            if _is_safe(state, _bit(square), _bit(end)):
                actions[count] = _encode(square, end)
                count += 1
                if end >= 56 and pawns & _bit(square):
                    for piece in range(3):
                        actions[count] = _encode_promotion(square, end, piece)
                        count += 1
        actions[begin:count].sort()
    castlings = _find_castlings(state)
    if castlings & 1:
        actions[count] = CASTLE_LEFT
        count += 1
    if castlings & 2:
        actions[count] = CASTLE_RIGHT
        count += 1
    return count


@njit(cache=True, nogil=True)
def _write(lists, place, head, targets):  # type: ignore[no-untyped-def]
    """Writes three numbers: what moves, and the targets' lower and upper half. Returns the next place."""
    lists[place] = head
    lists[place + 1] = np.int32(targets & np.uint64(0xFFFFFFFF))
    lists[place + 2] = np.int32(targets >> np.uint64(32))
    return place + 3


@njit(cache=True, nogil=True)
def _read_targets(lists, place):  # type: ignore[no-untyped-def]
    lower, upper = np.uint64(np.uint32(lists[place + 1])), np.uint64(np.uint32(lists[place + 2]))
    return lower | (upper << np.uint64(32))


@njit(cache=True, nogil=True)
def _write_pawns(state, lists):  # type: ignore[no-untyped-def]
    """Writes the pawns' moves for ``draw``; returns the next place, and how many moves they are."""
    mover_pieces, other = np.uint64(state[_OWN]), np.uint64(state[_OTHER])
    pawns, occupied = mover_pieces & np.uint64(state[_PAWNS]), mover_pieces | other
    if not pawns:
        return 0, 0
    once = (pawns << np.uint64(8)) & ~occupied
    twice = ((once & _ROW_2) << np.uint64(8)) & ~occupied
    targets = other | np.uint64(state[_EN_PASSANT])
    left = (pawns << np.uint64(7)) & _NOT_FILE_H & targets
    right = (pawns << np.uint64(9)) & _NOT_FILE_A & targets
    length = _write(lists, 0, -8, once)
    length = _write(lists, length, -16, twice)
    length = _write(lists, length, -7, left)
    length = _write(lists, length, -9, right)
    total = count_bits(once) + count_bits(twice) + count_bits(left) + count_bits(right)
    if (once | left | right) & _LAST_ROW:
        for piece in range(32, 128, 32):
            length = _write(lists, length, -8 - piece, once & _LAST_ROW)
            length = _write(lists, length, -7 - piece, left & _LAST_ROW)
            length = _write(lists, length, -9 - piece, right & _LAST_ROW)
        total += 3 * (
            count_bits(once & _LAST_ROW) + count_bits(left & _LAST_ROW) + count_bits(right & _LAST_ROW)
        )
    return length, total


@njit(cache=True, nogil=True)
def draw(state, actions, noise):  # type: ignore[no-untyped-def]
    """Draws among the moves that may leave the king attacked, until one does not.

    ``actions`` gets lists of such moves, each of a head and targets. A head from 0 to 63 is the square of a
    piece, and 64 castles. Under 0 it stands for pawns: the step to the target, + 32 times the promoted piece.
    """
    mover_pieces, other = np.uint64(state[_OWN]), np.uint64(state[_OTHER])
    occupied = mover_pieces | other
    length, total = _write_pawns(state, actions)
    queens = np.uint64(state[_QUEENS])
    pieces = mover_pieces & np.uint64(state[_KNIGHTS])
    while pieces:
        square = find_lowest(pieces)
        targets = _KNIGHT[square] & ~mover_pieces
        length, total = _write(actions, length, square, targets), total + count_bits(targets)
        pieces &= pieces - _ONE
    pieces = mover_pieces & (np.uint64(state[_BISHOPS]) | queens)
    while pieces:
        square = find_lowest(pieces)
        targets = _see_diagonal(occupied, square) & ~mover_pieces
        length, total = _write(actions, length, square, targets), total + count_bits(targets)
        pieces &= pieces - _ONE
    pieces = mover_pieces & (np.uint64(state[_ROOKS]) | queens)
    while pieces:
        square = find_lowest(pieces)
        targets = _see_straight(occupied, square) & ~mover_pieces
        length, total = _write(actions, length, square, targets), total + count_bits(targets)
        pieces &= pieces - _ONE
    square = find_lowest(mover_pieces & np.uint64(state[_KINGS]))
    targets = _KING[square] & ~mover_pieces
    length, total = _write(actions, length, square, targets), total + count_bits(targets)
    if state[_CASTLING] & 3:
        targets = np.uint64(_find_castlings(state))
        length, total = _write(actions, length, 64, targets), total + count_bits(targets)
    while True:
        number, place = draw_below(noise, total), 0
        targets = _read_targets(actions, 0)
        while number >= count_bits(targets):
            number -= count_bits(targets)
            place += 3
            targets = _read_targets(actions, place)
        head, end = np.int64(actions[place]), pick_bit(targets, number)
        if head == 64:
            return CASTLE_LEFT + end
        start = head if head >= 0 else end - (-head & 31)
        if _is_safe(state, _bit(start), _bit(end)):
            if head <= -32:
                return _encode_promotion(start, end, (-head >> 5) - 1)
            return _encode(start, end)


@njit(cache=True, nogil=True)
def _key(seat, kind, square):  # type: ignore[no-untyped-def]
    """Returns the hash of one piece; the square is as the seat to move sees it, ``seat`` owns the piece."""
    return mix(1 + (seat << 9) + (kind << 6) + square)


@njit(cache=True, nogil=True)
def _decode(action):  # type: ignore[no-untyped-def]
    """Returns a move's squares, and the rook, bishop or knight that a pawn becomes, or 0."""
    origin, code = action // _TARGETS, action % _TARGETS
    square = 8 * (origin & 7) + (origin >> 3)
    if code >= 9:
        return square, square + _STEPS[code - 9], 0
    direction = code % 3
    return square, square + (8 if direction == 0 else (9 if direction == 1 else 7)), _ROOKS - code // 3


@njit(cache=True, nogil=True)
def _castle(state, left, view):  # type: ignore[no-untyped-def]
    """Moves the mover's king and rook; returns the squares that change, and how the hash does."""
    seat, king = state[PLAYER], 2 if left else 6
    rook, corner = (3, 0) if left else (5, 7)
    kings, rooks = _bit(4) | _bit(king), _bit(rook) | _bit(corner)
    state[_KINGS] ^= np.int64(kings)
    state[_ROOKS] ^= np.int64(rooks)
    placed = _key(seat, _KINGS, 4 ^ view) ^ _key(seat, _KINGS, king ^ view)
    placed ^= _key(seat, _ROOKS, corner ^ view) ^ _key(seat, _ROOKS, rook ^ view)
    return kings | rooks, placed


@njit(cache=True, nogil=True)
def apply(state, action):  # type: ignore[no-untyped-def]
    seat, mover_pieces, other = state[PLAYER], np.uint64(state[_OWN]), np.uint64(state[_OTHER])
    view = 0 if seat == 1 else 56  # the hash has the squares as white sees them
    placed, rights = np.uint64(state[_HASH]), state[_CASTLING]
    quiet, passing = True, np.uint64(0)
    if action >= CASTLE_LEFT:
        castled, moved = _castle(state, action == CASTLE_LEFT, view)
        mover_pieces ^= castled
        placed ^= moved
        rights &= 12
    else:
        square, target, piece = _decode(action)
        start, end = _bit(square), _bit(target)
        if start & np.uint64(state[_PAWNS]):
            quiet = False
            if end == np.uint64(state[_EN_PASSANT]):
                other ^= end >> np.uint64(8)
                state[_PAWNS] ^= np.int64(end >> np.uint64(8))
                placed ^= _key(1 - seat, _PAWNS, (target - 8) ^ view)
            elif target - square == 16:
                beside = ((end << _ONE) & _NOT_FILE_A) | ((end >> _ONE) & _NOT_FILE_H)
                if beside & other & np.uint64(state[_PAWNS]):
                    passing = start << np.uint64(8)
            elif target >= 56 and piece == 0:
                piece = _QUEENS
        kind = taken = 0
        for one in range(_PAWNS, _KINGS + 1):
            word = np.uint64(state[one])
            if word & start:
                kind = one
            if word & end:
                taken = one
            state[one] = np.int64(word & ~(start | end))
        if taken:
            quiet = False
            other &= ~end
            placed ^= _key(1 - seat, taken, target ^ view)
        placed ^= _key(seat, kind, square ^ view)
        if piece:
            kind = piece
        placed ^= _key(seat, kind, target ^ view)
        state[kind] |= np.int64(end)
        mover_pieces = (mover_pieces & ~start) | end
        rights &= _RIGHTS[square] & _RIGHTS[target]
    # The other seat's view.
    for one in range(_PAWNS, _KINGS + 1):
        state[one] = np.int64(swap_bytes(np.uint64(state[one])))
    state[_OWN], state[_OTHER] = np.int64(swap_bytes(other)), np.int64(swap_bytes(mover_pieces))
    state[PLAYER], state[_HASH] = 1 - seat, np.int64(placed)
    state[_CASTLING] = (rights >> 2) | ((rights & 3) << 2)
    state[_EN_PASSANT] = np.int64(swap_bytes(passing))
    if quiet:
        state[_QUIET] += 1
    else:
        state[_QUIET] = state[_COUNT] = 0
    _arrive(state)


@njit(cache=True, nogil=True)
def _arrive(state):  # type: ignore[no-untyped-def]
    """Notes a new position, and ends the game if it has to end there."""
    mover_pieces, other = np.uint64(state[_OWN]), np.uint64(state[_OTHER])
    count = state[_COUNT]
    file = np.int64(find_lowest(np.uint64(state[_EN_PASSANT])) & 7) + 1 if state[_EN_PASSANT] else 0
    position = np.int64(np.uint64(state[_HASH]) ^ mix(1024 + 16 * state[_CASTLING] + file))
    state[_HASHES + count] = position
    state[_COUNT] = count + 1
    state[_CHECKED] = 0
    if not (state[_PAWNS] | state[_ROOKS] | state[_QUEENS]) and not _can_mate(state):
        state[PLAYER] = ENDED
        return
    earlier, place = 0, _HASHES + count - 4
    while place >= _HASHES:
        if state[place] == position:
            earlier += 1
        place -= 2
    if earlier >= 2:
        state[PLAYER] = ENDED
        return
    king = find_lowest(mover_pieces & np.uint64(state[_KINGS]))
    if _is_attacked(state, king, mover_pieces | other, other):
        state[_CHECKED] = 1
    if not _can_move(state):
        if state[_CHECKED]:
            state[_RESULT] = 1 if state[PLAYER] == 1 else -1
        state[PLAYER] = ENDED
    elif state[_QUIET] >= _QUIET_LIMIT:
        state[PLAYER] = ENDED


@njit(cache=True, nogil=True)
def _can_mate(state):  # type: ignore[no-untyped-def]
    """Returns whether knights and bishops suffice for some mate."""
    knights, bishops = np.uint64(state[_KNIGHTS]), np.uint64(state[_BISHOPS])
    if knights:
        return count_bits(knights | bishops) > 1
    return bishops & _DARK != 0 and bishops & ~_DARK != 0


@njit(cache=True, nogil=True)
def result(state):  # type: ignore[no-untyped-def]
    return float(state[_RESULT])


# -- from OpenSpiel ------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _replay(state, actions):  # type: ignore[no-untyped-def]
    """Begins at a state, and makes moves."""
    for square in range(64):
        for seat in range(2):
            for kind in range(_PAWNS, _KINGS + 1):
                mine = seat == state[PLAYER]
                view = 0 if state[PLAYER] == 1 else 56
                if state[_OWN if mine else _OTHER] & state[kind] & np.int64(_bit(square)):
                    state[_HASH] ^= np.int64(_key(seat, kind, square ^ view))
    _arrive(state)
    for action in actions:
        apply(state, action)


def read(state: Any) -> npt.NDArray[np.int64]:
    """Returns a state of OpenSpiel's chess."""
    compiled = _read_start(state.start_fen())
    _replay(compiled, np.array(state.history(), dtype=np.int64))
    return compiled


def _read_start(fen: str) -> npt.NDArray[np.int64]:
    """Returns the state of a position in Forsyth-Edwards Notation, before ``_arrive``."""
    board, side, castling, passing, quiet, _ = fen.split(" ")
    rows = ["".join(" " * int(mark) if mark.isdigit() else mark for mark in row) for row in board.split("/")]
    if side == "w":
        seat, view = 1, "".join(reversed(rows))
    else:
        seat, view, castling = 0, "".join(rows).swapcase(), castling.swapcase()
    words = [sum(1 << square for square, mark in enumerate(view) if mark in marks) for marks in _MARKS]
    compiled = np.zeros(STATE, dtype=np.int64)
    compiled[: _KINGS + 1] = np.array(words, dtype=np.uint64).view(np.int64)
    compiled[PLAYER], compiled[_QUIET] = seat, int(quiet)
    compiled[_CASTLING] = sum(1 << place for place, mark in enumerate("QKqk") if mark in castling)
    compiled[_EN_PASSANT] = 0 if passing == "-" else 1 << (40 + "abcdefgh".index(passing[0]))
    return compiled


_MARKS = ("PNBRQK", "pnbrqk", "Pp", "Nn", "Bb", "Rr", "Qq", "Kk")
