"""Compiled rules of backgammon.

Places are numbered as their owner sees them: 0 to 5 are a seat's home, 23 is the farthest point, and 24 is
the bar. A die moves a checker down by its number. OpenSpiel's actions number the points as the second seat
does. In a word, bit ``place`` is for a place.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit

from game_gym.opponents.fast.rules import CHANCE, ENDED, count_bits, draw_below, find_lowest, pick_bit

STATE = 65
"""Both seats' checkers on each place, 25 numbers each; then the numbers that the constants below name."""

ACTIONS = 450
"""Two orders of the dice, each with at most 15 places for either die."""

_OWN = 50  # the places that a seat has checkers on: a word per seat
_BLOCKED = 52  # the points that hold two or more of the other's checkers, numbered as the seat does
_OFF = 54  # the checkers that a seat has borne off
PLAYER = 56
_SEAT = 57  # the seat that moves, or moved last
_LOW, _HIGH = 58, 59  # the dice, 0 before the roll
_AGAIN = 60  # whether this is the second half of a double
_TURNS = 61  # turns of both seats, -1 before the first roll
_MOST_TURNS = 62
_GAMMON, _BACKGAMMON = 63, 64  # the returns of these wins; that of a backgammon is the greatest

_BAR = 24
_PASS = 25
_BASE = 26  # an action has two digits: where the first checker starts, and where the second does
_LOW_FIRST = 676  # is added if the first checker moves by the lower die
_NONE = _LOW_FIRST + _BASE * _PASS + _PASS  # the action if no checker can move
_CHECKERS = 15

_SCORING = {"winloss_scoring": (1, 1), "enable_gammons": (2, 2), "full_scoring": (2, 3)}
_FIELDS = re.compile(r"Previous player: (-?\d)\nExtra turn: ([01])\nDice: (\d*)\nBar: ?(x*)(o*)\n")
_SCORES = re.compile(r"Scores, X: (\d+), O: (\d+)")

_ROLLS = np.array(  # the dice by outcome; before them there are as many in which they fall the other way
    [(low, high) for low in range(1, 7) for high in range(low + 1, 7)] + [(die, die) for die in range(1, 7)]
)


def read(state: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Returns a state of OpenSpiel's backgammon."""
    params, text = state.get_game().get_parameters(), state.to_string()
    fields, scores = _FIELDS.search(text), _SCORES.search(text)
    if fields is None or scores is None:
        raise RuntimeError("backgammon's string is not as expected")
    previous, again, dice, *bars = fields.groups()
    compiled = np.zeros(STATE, dtype=np.int64)
    for seat in (0, 1):
        for place in range(_BAR):
            compiled[25 * seat + place] = state.board(seat, place if seat == 1 else 23 - place)
        compiled[25 * seat + _BAR] = len(bars[seat])
        compiled[_OFF + seat] = int(scores[1 + seat])
        for place in range(_BAR + 1):
            checkers = int(compiled[25 * seat + place])
            compiled[_OWN + seat] |= (checkers > 0) << place
            if place < _BAR:
                compiled[_BLOCKED + 1 - seat] |= (checkers > 1) << (23 - place)
    movers = [move.player for move in state.full_history()]
    compiled[PLAYER] = player = ENDED if state.is_terminal() else state.current_player()
    compiled[_SEAT] = player if player >= 0 else max(int(previous), 0)
    compiled[_LOW], compiled[_HIGH] = (int(die) for die in dice or "00")
    compiled[_AGAIN] = int(again)
    # Every turn begins with a roll; that of the turn to come has not been counted.
    compiled[_TURNS] = sum(mover >= 0 > roller for roller, mover in pairwise(movers))
    if not movers:
        compiled[_TURNS] = -1
    compiled[_MOST_TURNS] = params["max_player_turns"]
    compiled[_GAMMON], compiled[_BACKGAMMON] = _SCORING[params["scoring_type"]]
    return compiled


@njit(cache=True, nogil=True)
def _starts(places, blocked, die):  # type: ignore[no-untyped-def]
    """Returns the places from which a die moves a checker."""
    if places >> _BAR:
        places = 1 << _BAR
    starts = ((places >> die) & ~blocked) << die
    if places < 64:  # all are at home
        exact = 1 << (die - 1)
        if places & exact:
            starts |= exact
        elif places < exact:  # then the farthest may go
            farthest = places | (places >> 1)
            farthest |= farthest >> 2
            farthest |= farthest >> 4
            starts |= farthest ^ (farthest >> 1)
    return starts


@njit(cache=True, nogil=True)
def _own_after(state, seat, place, die):  # type: ignore[no-untyped-def]
    """Returns the places that the seat has checkers on after a move."""
    places = state[_OWN + seat]
    if state[25 * seat + place] == 1:
        places &= ~(1 << place)
    if place >= die:
        places |= 1 << (place - die)
    return places


@njit(cache=True, nogil=True)
def _digit(seat, place):  # type: ignore[no-untyped-def]
    """Returns an action's digit for a place."""
    return place if seat == 1 or place == _BAR else 23 - place


@njit(cache=True, nogil=True)
def _list(state, actions):  # type: ignore[no-untyped-def]
    """Writes a seat's legal actions in any order; returns how many there are."""
    seat, low, high = state[_SEAT], state[_LOW], state[_HIGH]
    places, blocked = state[_OWN + seat], state[_BLOCKED + seat]
    count = 0
    for low_first in range(1 if low == high else 2):
        die, other = (low, high) if low_first else (high, low)
        firsts = _starts(places, blocked, die)
        while firsts:
            place = find_lowest(firsts)
            firsts &= firsts - 1
            seconds = _starts(_own_after(state, seat, place, die), blocked, other)
            begin = low_first * _LOW_FIRST + _digit(seat, place)
            while seconds:
                actions[count] = begin + _BASE * _digit(seat, find_lowest(seconds))
                seconds &= seconds - 1
                count += 1
    if count > 0:
        return count
    # One checker moves at most: by the higher die if it can.
    begin, firsts = _BASE * _PASS, _starts(places, blocked, high)
    if firsts == 0:
        begin, firsts = begin + _LOW_FIRST, _starts(places, blocked, low)
    while firsts:
        actions[count] = begin + _digit(seat, find_lowest(firsts))
        firsts &= firsts - 1
        count += 1
    if count == 0:
        actions[0] = begin + _PASS
        count = 1
    return count


@njit(cache=True, nogil=True)
def _outcomes(state):  # type: ignore[no-untyped-def]
    """Returns how many outcomes a roll has: the first is no double."""
    return 30 if state[_TURNS] < 0 else 36


@njit(cache=True, nogil=True)
def legal(state, actions):  # type: ignore[no-untyped-def]
    if state[PLAYER] == ENDED:
        return 0
    if state[PLAYER] == CHANCE:
        for outcome in range(_outcomes(state)):
            actions[outcome] = outcome
        return _outcomes(state)
    count = _list(state, actions)
    actions[:count].sort()
    return count


@njit(cache=True, nogil=True)
def draw(state, actions, noise):  # type: ignore[no-untyped-def]
    if state[PLAYER] == CHANCE:
        return draw_below(noise, _outcomes(state))
    seat, low, high = state[_SEAT], state[_LOW], state[_HIGH]
    places, blocked = state[_OWN + seat], state[_BLOCKED + seat]
    outside = places >> 6
    if places < 1 << _BAR and outside & (outside - 1):
        # None is on the bar, and none will be borne off. So the second checker starts where it can start now,
        # or where the first one lands. Draw by rejection: from those, and accept if the second can move.
        low_starts, high_starts = _starts(places, blocked, low), _starts(places, blocked, high)
        lows, highs = count_bits(low_starts), count_bits(high_starts)
        if lows + highs == 0:
            return np.int64(_NONE)
        high_first = highs * (lows + 1)
        every = high_first if low == high else high_first + lows * (highs + 1)
        for _ in range(8):
            drawn = draw_below(noise, every)
            action = 0
            if drawn < high_first:
                firsts, seconds, count, die, other = high_starts, low_starts, lows + 1, high, low
            else:
                drawn -= high_first
                firsts, seconds, count, die, other = low_starts, high_starts, highs + 1, low, high
                action = _LOW_FIRST
            place = drawn // count
            second = drawn - place * count
            place = pick_bit(firsts, place)
            if second == count - 1:  # the first lands there, and nothing could start there without it
                second = place - die
                if (seconds >> second) & 1 or second < other or (blocked >> (second - other)) & 1:
                    continue
            else:
                second = pick_bit(seconds, second)
                if second == place and state[25 * seat + place] == 1:
                    continue
            return np.int64(action + _digit(seat, place) + _BASE * _digit(seat, second))
    return np.int64(actions[draw_below(noise, _list(state, actions))])


@njit(cache=True, nogil=True)
def _move(state, seat, place, die):  # type: ignore[no-untyped-def]
    """Moves a checker."""
    offset, other = 25 * seat, 25 * (1 - seat)
    checkers = state[offset + place] - 1
    state[offset + place] = checkers
    if checkers == 0:
        state[_OWN + seat] ^= 1 << place
    elif checkers == 1 and place < _BAR:
        state[_BLOCKED + 1 - seat] ^= 1 << (23 - place)
    if place < die:
        state[_OFF + seat] += 1
        return
    place -= die
    checkers = state[offset + place] + 1
    state[offset + place] = checkers
    if checkers == 1:
        state[_OWN + seat] ^= 1 << place
        if state[other + 23 - place] == 1:  # is hit
            state[other + 23 - place] = 0
            state[other + _BAR] += 1
            state[_OWN + 1 - seat] = (state[_OWN + 1 - seat] ^ (1 << (23 - place))) | 1 << _BAR
    elif checkers == 2:
        state[_BLOCKED + 1 - seat] ^= 1 << (23 - place)


@njit(cache=True, nogil=True)
def apply(state, action):  # type: ignore[no-untyped-def]
    if state[PLAYER] == CHANCE:
        if state[_TURNS] < 0:
            state[_TURNS] = 0
            seat = action & 1
        else:
            seat = 1 - state[_SEAT]
        roll = action >> 1 if action < 30 else action - 15
        state[_LOW], state[_HIGH] = _ROLLS[roll, 0], _ROLLS[roll, 1]
        state[_SEAT] = state[PLAYER] = seat
        return
    seat, die, other = state[_SEAT], state[_HIGH], state[_LOW]
    if action >= _LOW_FIRST:
        action, die, other = action - _LOW_FIRST, other, die
    second = action // _BASE
    first = action - _BASE * second
    if first != _PASS:
        _move(state, seat, _digit(seat, first), die)
    if second != _PASS:
        _move(state, seat, _digit(seat, second), other)
    state[_TURNS] += 1 - state[_AGAIN]
    if die == other and state[_AGAIN] == 0 and first != _PASS and second != _PASS:
        state[_AGAIN] = 1
    else:
        state[_AGAIN] = state[_LOW] = state[_HIGH] = 0
        state[PLAYER] = CHANCE
    if state[_OFF + seat] == _CHECKERS or state[_TURNS] > state[_MOST_TURNS]:
        state[PLAYER] = ENDED


@njit(cache=True, nogil=True)
def result(state):  # type: ignore[no-untyped-def]
    for seat in range(2):
        if state[_OFF + seat] == _CHECKERS:
            loser, value = 1 - seat, np.int64(1)
            if state[_OFF + loser] == 0:
                # A backgammon: a checker on the bar, or in the winner's home.
                value = state[_BACKGAMMON] if state[_OWN + loser] >> 18 else state[_GAMMON]
            return 1.0 * value if seat == 0 else -1.0 * value
    return 0.0


@njit(cache=True, nogil=True)
def utility(state):  # type: ignore[no-untyped-def]
    return 1.0 * state[_BACKGAMMON]
