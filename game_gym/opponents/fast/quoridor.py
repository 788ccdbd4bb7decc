"""Compiled rules of quoridor for two, on boards of at most 9 columns.

Square ``9 * row + column`` is the same for every board size. A wall is named by its middle, a corner of four
squares: corner ``8 * row + column`` is at the lower right of square ``9 * row + column``. So the walls of one
orientation are one word of 64 bits. Squares are two words: rows 0 to 4, and rows 5 to 8.

A spot is an action without the board size: 2 * corner + orientation (0 below squares, 1 right of them), then
from 128 the pawn's eight directions in the order of OpenSpiel's actions. A jump straight over the other pawn
is a step.

Most moves of a random game are made by pawns after the last wall. Three things make them cheap:

- ``draw`` and ``apply`` are inlined.
- They pass no array to a function that is not inlined, because Numba counts references around such a call.
  They pass ``_words`` instead.
- A mask such as ``& 127`` changes no number. It shows the compiler that an index is not negative.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from game_gym.opponents.fast.rules import ENDED, draw_below, mix
from task_gym.errors import OpponentError

STATE = 96
"""The numbers below, then each square's open directions: bit ``d`` is direction ``d``."""

ACTIONS = 133
"""Two walls at each of 64 corners, and at most five moves of a pawn."""

PLAYER = 0
_PAWNS = 1  # the square of each seat's pawn
_LEFT = 3  # walls that each seat has left
_MADE = 5  # moves made
_SIZE = 6
_FREE = 7  # corners at which a wall would overlap none: of orientation 0, of orientation 1
_TOUCHED = 9  # corners that a wall's middle or end touches
_RIGHT = 10  # squares open to the right: two words
_DOWN = 12  # squares open downwards: two words
_LIMIT = 14  # moves after which the game is drawn
_OPEN = 15

_PAWN_SPOTS = 128
_SPOTS = 136

_UP, _TO_LEFT, _TO_RIGHT, _BELOW = 1, 3, 4, 6
_STEPS = (-10, -9, -8, -1, 1, 8, 9, 10)
"""The number that each direction adds to a square."""

_ONE = np.uint64(1)
_LOW = np.uint64((1 << 45) - 1)
_ROW = np.uint64((1 << 9) - 1)
_TOP_CORNERS, _LEFT_CORNERS = np.uint64(0xFF), np.uint64(0x0101010101010101)
_NOT_LEFT, _NOT_RIGHT = np.uint64(0xFEFEFEFEFEFEFEFE), np.uint64(0x7F7F7F7F7F7F7F7F)


def _list_actions() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Returns each spot's action by board size, and each action's spot, or -1."""
    actions = np.full((10, _SPOTS), -1, dtype=np.int16)
    spots = np.full((10, 17 * 17), -1, dtype=np.int16)
    for size in range(3, 10):
        width = 2 * size - 1
        for row in range(size - 1):
            for column in range(size - 1):
                spot = 2 * (8 * row + column)
                actions[size, spot] = (2 * row + 1) * width + 2 * column
                actions[size, spot + 1] = 2 * row * width + 2 * column + 1
        places = [(row, column) for row in (0, 2, 4) for column in (0, 2, 4) if (row, column) != (2, 2)]
        for direction, (row, column) in enumerate(places):
            actions[size, _PAWN_SPOTS + direction] = row * width + column
        for spot in range(_SPOTS):
            if actions[size, spot] >= 0:
                spots[size, actions[size, spot]] = spot
    return actions, spots


def _list_moves() -> np.ndarray[Any, Any]:
    """Returns a number for each action by board size: a pawn's step, or a wall's spot + ``_WALL``."""
    moves = np.zeros((10, 17 * 17), dtype=np.int16)
    for size, action in np.argwhere(_SPOT_OF >= 0):
        spot = _SPOT_OF[size, action]
        moves[size, action] = spot + _WALL if spot < _PAWN_SPOTS else _STEPS[spot - _PAWN_SPOTS]
    return moves


def _list_picks() -> np.ndarray[Any, Any]:
    """Returns the action that each of 60 equal chances picks from at most five directions, by board size."""
    picks = np.zeros((10, 256, 60), dtype=np.int8)
    for directions in range(256):
        members = [direction for direction in range(8) if directions >> direction & 1]
        if 0 < len(members) < 6:
            spots = [_PAWN_SPOTS + members[chance * len(members) // 60] for chance in range(60)]
            picks[:, directions] = _ACTION_OF[:, spots]
    return picks


_WALL = 128

_ACTION_OF, _SPOT_OF = _list_actions()
_MOVE_OF = _list_moves()
_PICKS = _list_picks()


def read(state: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Returns a state of OpenSpiel's quoridor.

    The moves are made again: a drawing does not always tell which walls the pieces belong to.

    Raises:
        OpponentError: there are more than 9 columns.
    """
    params = state.get_game().get_parameters()
    size, walls = params["board_size"], params["wall_count"]
    if size > 9:
        raise OpponentError(
            "opponent: 'mcts-fast' was given for 'quoridor', whose compiled rules are for a board_size of "
            f"3 to 9, not {size}"
        )
    compiled = np.zeros(STATE, dtype=np.int64)
    _begin(compiled, size, walls)
    for action in state.history():
        apply(compiled, action)
    return compiled


@njit(cache=True, nogil=True)
def _begin(state, size, walls):  # type: ignore[no-untyped-def]
    """Writes the first position to an array of zeros."""
    middle = size // 2
    state[_PAWNS], state[_PAWNS + 1] = 9 * (size - 1) + middle, middle
    state[_LEFT], state[_LEFT + 1] = walls, walls
    state[_SIZE], state[_LIMIT] = size, 4 * size * size
    for row in range(size):
        for column in range(size):
            square = 9 * row + column
            half, bit = square // 45, np.int64(1) << (square % 45)
            if row + 1 < size and column + 1 < size:
                corner = np.int64(_ONE << np.uint64(8 * row + column))
                state[_FREE] |= corner
                state[_FREE + 1] |= corner
            if column + 1 < size:
                state[_RIGHT + half] |= bit
                state[_OPEN + square] |= 1 << _TO_RIGHT
                state[_OPEN + square + 1] |= 1 << _TO_LEFT
            if row + 1 < size:
                state[_DOWN + half] |= bit
                state[_OPEN + square] |= 1 << _BELOW
                state[_OPEN + square + 9] |= 1 << _UP


# -- pawns ---------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, forceinline=True)
def _directions(state, seat):  # type: ignore[no-untyped-def]
    """Returns the directions in which a pawn may move, as bits."""
    square, other = state[_PAWNS + seat], state[_PAWNS + 1 - seat]
    directions = state[_OPEN + (square & 127)]
    difference = other - square
    if difference == 1:
        return _jumps(directions, state[_OPEN + other], _TO_RIGHT)
    if difference == -1:
        return _jumps(directions, state[_OPEN + other], _TO_LEFT)
    if difference == 9:
        return _jumps(directions, state[_OPEN + other], _BELOW)
    if difference == -9:
        return _jumps(directions, state[_OPEN + other], _UP)
    return directions


@njit(cache=True, nogil=True, forceinline=True)
def _jumps(directions, behind, direction):  # type: ignore[no-untyped-def]
    """Returns a pawn's directions where the other pawn is beside it; ``behind`` are that pawn's open ones."""
    if not (directions >> direction) & 1 or (behind >> direction) & 1:
        return directions
    directions &= ~(1 << direction)
    if direction in (_UP, _BELOW):
        directions |= ((behind >> _TO_LEFT) & 1) << (direction - 1)
        directions |= ((behind >> _TO_RIGHT) & 1) << (direction + 1)
    else:
        # The diagonal directions above and below this one: 0 and 5, or 2 and 7.
        above = 0 if direction == _TO_LEFT else 2
        directions |= ((behind >> _UP) & 1) << above
        directions |= ((behind >> _BELOW) & 1) << (above + 5)
    return directions


# -- walls ---------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, forceinline=True)
def _words(state):  # type: ignore[no-untyped-def]
    """Returns a state's first numbers: all that says where walls fit."""
    return (
        np.uint64(state[0]),
        np.uint64(state[1]),
        np.uint64(state[2]),
        np.uint64(state[3]),
        np.uint64(state[4]),
        np.uint64(state[5]),
        np.uint64(state[6]),
        np.uint64(state[7]),
        np.uint64(state[8]),
        np.uint64(state[9]),
        np.uint64(state[10]),
        np.uint64(state[11]),
        np.uint64(state[12]),
        np.uint64(state[13]),
    )


@njit(cache=True, nogil=True)
def _fits(words, spot):  # type: ignore[no-untyped-def]
    """Says whether a wall overlaps none and leaves both pawns a way."""
    upright = spot & 1
    corner = np.uint64(spot >> 1)
    free = words[_FREE + 1] if upright else words[_FREE]
    if not (free >> corner) & _ONE:
        return False
    last = words[_SIZE] - np.uint64(2)
    touched = words[_TOUCHED]
    if upright:
        first_end = (touched << np.uint64(8)) | _TOP_CORNERS
        second_end = (touched >> np.uint64(8)) | (_TOP_CORNERS << (np.uint64(8) * last))
    else:
        first_end = (touched << _ONE) | _LEFT_CORNERS
        second_end = (touched >> _ONE) | (_LEFT_CORNERS << last)
    # A wall cuts nothing off unless it joins two others, or one and the edge.
    joining = (first_end & second_end) | (touched & (first_end | second_end))
    return not (joining >> corner) & _ONE or _leaves_ways(words, corner, upright)


@njit(cache=True, nogil=True)
def _spread_across(corners):  # type: ignore[no-untyped-def]
    return corners | ((corners << _ONE) & _NOT_LEFT) | ((corners >> _ONE) & _NOT_RIGHT)


@njit(cache=True, nogil=True)
def _spread_upright(corners):  # type: ignore[no-untyped-def]
    return corners | (corners << np.uint64(8)) | (corners >> np.uint64(8))


@njit(cache=True, nogil=True)
def _leaves_ways(words, corner, upright):  # type: ignore[no-untyped-def]
    """Says whether both pawns reach their goal rows past a new wall."""
    right_low, right_high = words[_RIGHT], words[_RIGHT + 1]
    down_low, down_high = words[_DOWN], words[_DOWN + 1]
    square = 9 * np.int64(corner >> np.uint64(3)) + np.int64(corner & np.uint64(7))
    low, high = _square_bit(square)
    if upright:
        low_too, high_too = _square_bit(square + 9)
        right_low &= ~(low | low_too)
        right_high &= ~(high | high_too)
    else:
        low_too, high_too = _square_bit(square + 1)
        down_low &= ~(low | low_too)
        down_high &= ~(high | high_too)
    goal_low, goal_high = _square_bit(9 * (np.int64(words[_SIZE]) - 1))
    goal_low, goal_high = goal_low * _ROW, goal_high * _ROW
    low, high = _square_bit(np.int64(words[_PAWNS]))
    low, high = _region(low, high, right_low, right_high, down_low, down_high)
    if not low & _ROW:
        return False
    low_too, high_too = _square_bit(np.int64(words[_PAWNS + 1]))
    if not (low & low_too or high & high_too):
        low, high = _region(low_too, high_too, right_low, right_high, down_low, down_high)
    return low & goal_low != 0 or high & goal_high != 0


@njit(cache=True, nogil=True, forceinline=True)
def _square_bit(square):  # type: ignore[no-untyped-def]
    """Returns a square as two words."""
    if square < 45:
        return _ONE << np.uint64(square), np.uint64(0)
    return np.uint64(0), _ONE << np.uint64(square - 45)


@njit(cache=True, nogil=True)
def _region(low, high, right_low, right_high, down_low, down_high):  # type: ignore[no-untyped-def]
    """Returns the squares that a pawn reaches, with its own."""
    one, row, rows = _ONE, np.uint64(9), np.uint64(36)
    while True:
        low_before, high_before = low, high
        low |= ((low & right_low) << one) | ((low >> one) & right_low)
        high |= ((high & right_high) << one) | ((high >> one) & right_high)
        down, up = low & down_low, (low >> row) | (high << rows)
        low |= ((down << row) & _LOW) | (up & down_low)
        high |= ((high & down_high) << row) | ((high >> row) & down_high) | (down >> rows)
        if low == low_before and high == high_before:
            return low, high


@njit(cache=True, nogil=True, forceinline=True)
def _place(state, spot):  # type: ignore[no-untyped-def]
    """Puts a wall on the board."""
    upright, corner = spot & 1, np.uint64(spot >> 1)
    wall = _ONE << corner
    square = 9 * (spot >> 4) + ((spot >> 1) & 7)
    if upright:
        wide, beside, behind, words = _spread_upright(wall), square + 9, 1, _RIGHT
        there, back = ~(1 << _TO_RIGHT), ~(1 << _TO_LEFT)
    else:
        wide, beside, behind, words = _spread_across(wall), square + 1, 9, _DOWN
        there, back = ~(1 << _BELOW), ~(1 << _UP)
    state[_FREE + upright] &= np.int64(~wide)
    state[_FREE + 1 - upright] &= np.int64(~wall)
    state[_TOUCHED] |= np.int64(wide)
    for one in (square, beside):
        low, high = _square_bit(one)
        state[words] &= np.int64(~low)
        state[words + 1] &= np.int64(~high)
        state[_OPEN + one] &= there
        state[_OPEN + one + behind] &= back


# -- moves ---------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def legal(state, actions):  # type: ignore[no-untyped-def]
    seat = state[PLAYER]
    if seat == ENDED:
        return 0
    size, count, words = state[_SIZE], 0, _words(state)
    directions = _directions(state, seat)
    for action in range((2 * size - 1) ** 2):
        spot = np.int64(_SPOT_OF[size, action])
        if spot >= _PAWN_SPOTS:
            is_legal = (directions >> (spot - _PAWN_SPOTS)) & 1 != 0
        else:
            is_legal = spot >= 0 and state[_LEFT + seat] > 0 and _fits(words, spot)
        if is_legal:
            actions[count] = action
            count += 1
    return count


@njit(cache=True, nogil=True, forceinline=True)
def draw(state, actions, noise):  # type: ignore[no-untyped-def]
    seat, size = state[PLAYER] & 1, state[_SIZE] & 15
    directions = _directions(state, seat) & 255
    if state[_LEFT + seat] == 0:
        return np.int64(_PICKS[size, directions, draw_below(noise, 60) & 63])
    return np.int64(_ACTION_OF[size, _draw_spot(_words(state), directions, draw_below(noise, 1 << 32))])


@njit(cache=True, nogil=True)
def _draw_spot(words, directions, number):  # type: ignore[no-untyped-def]
    """Returns a random legal spot; ``number`` begins its random numbers."""
    number = np.uint64(number)
    while True:
        number = mix(number + np.uint64(0x9E3779B97F4A7C15))
        spot = np.int64(((number >> np.uint64(32)) * np.uint64(_SPOTS)) >> np.uint64(32))
        if spot >= _PAWN_SPOTS:
            if (directions >> (spot - _PAWN_SPOTS)) & 1:
                return spot
        elif _fits(words, spot):
            return spot


@njit(cache=True, nogil=True, forceinline=True)
def apply(state, action):  # type: ignore[no-untyped-def]
    seat = state[PLAYER] & 1
    move = np.int64(_MOVE_OF[state[_SIZE] & 15, action & 511])
    state[PLAYER] = 1 - seat
    if move >= _WALL:
        _place(state, move - _WALL)
        state[_LEFT + seat] -= 1
    else:
        square = state[_PAWNS + seat] + move
        if square == state[_PAWNS + 1 - seat]:
            square += move
        state[_PAWNS + seat] = square
        if square < 9 if seat == 0 else square >= 9 * (state[_SIZE] - 1):
            state[PLAYER] = ENDED
    state[_MADE] += 1
    if state[_MADE] == state[_LIMIT]:
        state[PLAYER] = ENDED


@njit(cache=True, nogil=True)
def result(state):  # type: ignore[no-untyped-def]
    if state[_MADE] == state[_LIMIT]:
        return 0.0
    return 1.0 if state[_PAWNS] < 9 else -1.0
