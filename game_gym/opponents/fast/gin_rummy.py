"""Compiled rules of gin rummy with a whole deck.

Card ``13 * suit + rank`` is a bit of a word, and the cards of a hand, a deck or a meld are a word. A group is
some melds without a card in common, as one word.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from game_gym.opponents.fast.rules import CHANCE, ENDED, count_bits, draw_below, find_highest, find_lowest

STATE = 21
"""The numbers that the constants below name."""

ACTIONS = 52
"""The cards that chance deals first. A seat has fewer actions: at most 24 melds are in eleven cards."""

PLAYER = 0
_PHASE = 1
_MOVED = 2  # the seat that moved last, or CHANCE; from a knock on, the seat that knocked
_HANDS = 3  # the cards of each seat
_DECK = 5
_UPCARD = 6  # or -1
_UPCARD_BEFORE = 7  # the upcard at the last draw, or -1
_REPEATED = 8  # whether the last discard was the upcard that its seat had drawn
_TAKEN = 9  # how often an upcard was drawn, the first one of the game aside
_PASSED = 10  # how many seats have passed on the first upcard
_DEADWOOD = 11  # of the seat that is to discard or knock, with its best discard; else 0
_MELDS = 12  # the knocking seat's, each its number + 1, as the digits of a number
_LAID_OFF = 13  # cards that were added to them
_FINISHED = 14  # whether no more will be
_KNOCK = 15  # the most deadwood with which a seat may knock
_GIN, _UNDERCUT = 16, 17  # bonuses
_HAND_SIZE = 18
_OKLAHOMA = 19  # whether the first upcard decides on _KNOCK
_KNOCKED = 20

_DEAL, _FIRST_UPCARD, _DRAW, _DISCARD, _LAY, _LAY_OFF, _WALL = range(7)

_TAKE, _STOCK, _PASS, _KNOCKING = 52, 53, 54, 55
_FIRST_MELD = 56
_MELD_BASE = 256  # of the digits in ``_MELDS``

_MOST_TAKEN = 50
_WALL_STOCK = 2
_MOST_DEADWOOD = 98

_RANKS = (1 << 13) - 1
_ONE_RANK = 1 | 1 << 13 | 1 << 26 | 1 << 39
_BELOW = [_ONE_RANK * ((1 << ranks) - 1) for ranks in range(14)]
_START_3, _START_4, _START_5 = _BELOW[11], _BELOW[10], _BELOW[9]  # where a run of so many cards may begin
_NO_ACE, _NO_KING = _BELOW[13] - _BELOW[1], _BELOW[12]


def _list_values() -> tuple[int, ...]:
    """Returns the cards whose value has bit 0, bit 1, bit 2 or bit 3."""
    values = [min(10, card % 13 + 1) for card in range(52)]
    return tuple(sum(1 << card for card in range(52) if values[card] >> bit & 1) for bit in range(4))


def _list_melds() -> np.ndarray[Any, np.dtype[np.int64]]:
    """Returns the cards of each meld, in the order of OpenSpiel's actions."""
    melds = []
    for rank in range(13):
        four = _ONE_RANK << rank
        melds += [four & ~(1 << (13 * suit + rank)) for suit in range(4)] + [four]
    for size in (3, 4, 5):
        for suit in range(4):
            melds += [((1 << size) - 1) << (13 * suit + rank) for rank in range(14 - size)]
    return np.array(melds, dtype=np.int64)


_VALUE_1, _VALUE_2, _VALUE_4, _VALUE_8 = _list_values()
_CARDS_OF = _list_melds()


def read(state: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Returns a state of OpenSpiel's gin_rummy.

    The moves are made again: OpenSpiel does not show how often an upcard was drawn.
    """
    params = state.get_game().get_parameters()
    compiled = np.zeros(STATE, dtype=np.int64)
    compiled[PLAYER] = compiled[_MOVED] = CHANCE
    compiled[_UPCARD] = compiled[_UPCARD_BEFORE] = -1
    compiled[_DECK] = (1 << 52) - 1
    compiled[_KNOCK], compiled[_HAND_SIZE] = params["knock_card"], params["hand_size"]
    compiled[_GIN], compiled[_UNDERCUT] = params["gin_bonus"], params["undercut_bonus"]
    compiled[_OKLAHOMA] = params["oklahoma"]
    for action in state.history():
        apply(compiled, action)
    return compiled


# -- cards ---------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, forceinline=True)
def _value(cards):  # type: ignore[no-untyped-def]
    """Returns the points of cards: an ace 1, a face card 10."""
    ones, twos = count_bits(cards & _VALUE_1), count_bits(cards & _VALUE_2)
    fours, eights = count_bits(cards & _VALUE_4), count_bits(cards & _VALUE_8)
    return ones + 2 * twos + 4 * fours + 8 * eights


@njit(cache=True, nogil=True, forceinline=True)
def _highest(cards):  # type: ignore[no-untyped-def]
    """Returns the points of the highest of some cards."""
    ranks = (cards | cards >> 13 | cards >> 26 | cards >> 39) & _RANKS
    return min(10, find_highest(ranks) + 1)


@njit(cache=True, nogil=True, forceinline=True)
def _pick(cards, rank):  # type: ignore[no-untyped-def]
    """Returns the card that so many others are lower than."""
    card = 0
    for width in (32, 16, 8, 4, 2, 1):
        lower = count_bits(cards & ((1 << width) - 1))
        if rank >= lower:
            rank -= lower
            cards >>= width
            card += width
    return card


# -- melds ---------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True, forceinline=True)
def _find_runs(hand):  # type: ignore[no-untyped-def]
    """Returns the cards with which runs of three begin, of four, and of five."""
    three = hand & hand >> 1 & hand >> 2 & _START_3
    four = three & hand >> 3 & _START_4
    return three, four, four & hand >> 4 & _START_5


@njit(cache=True, nogil=True, forceinline=True)
def _find_sets(hand):  # type: ignore[no-untyped-def]
    """Returns the ranks of which a hand has three cards or four, and those of which it has four."""
    first, second, third, fourth = hand, hand >> 13, hand >> 26, hand >> 39
    three = (first & second & (third | fourth)) | (third & fourth & (first | second))
    return three & _RANKS, first & second & third & fourth & _RANKS


@njit(cache=True, nogil=True)
def _list_groupable(hand, melds):  # type: ignore[no-untyped-def]
    """Writes a hand's melds in the order in which OpenSpiel finds them; returns how many there are.

    Of groups that are worth the same, OpenSpiel takes the first. The card that is then left to be discarded
    depends on it.
    """
    three, four = _find_sets(hand)
    runs_3, runs_4, runs_5 = _find_runs(hand)
    count, ranks = 0, four
    while ranks:
        rank = find_lowest(ranks)
        cards = _ONE_RANK << rank
        melds[count] = cards
        melds[count + 1] = cards & ~(1 << (26 + rank))
        melds[count + 2] = cards & ~(1 << (13 + rank))
        count += 3
        ranks &= ranks - 1
    ranks = three
    while ranks:
        rank = find_lowest(ranks)
        cards = hand & (_ONE_RANK << rank)
        if four >> rank & 1:
            melds[count] = cards & ~(1 << (39 + rank))
            melds[count + 1] = cards & ~(1 << rank)
            count += 2
        else:
            melds[count] = cards
            count += 1
        ranks &= ranks - 1
    for size, starts in ((5, runs_5), (4, runs_4), (3, runs_3)):
        while starts:
            melds[count] = ((1 << size) - 1) << find_lowest(starts)
            count += 1
            starts &= starts - 1
    return count


@njit(cache=True, nogil=True)
def _choose_group(hand):  # type: ignore[no-untyped-def]
    """Returns the first of the groups that are worth most, from a hand with a meld."""
    melds = np.empty(24, dtype=np.int64)
    count = _list_groupable(hand, melds)
    best, most = 0, 0
    for one in range(count):
        group = melds[one]
        worth = _value(group)
        if worth > most:
            best, most = group, worth
        for other in range(one + 1, count):
            if melds[other] & group:
                continue
            pair = group | melds[other]
            worth = _value(pair)
            if worth > most:
                best, most = pair, worth
            for third in range(other + 1, count):
                if not melds[third] & pair:
                    worth = _value(pair | melds[third])
                    if worth > most:
                        best, most = pair | melds[third], worth
    return best


@njit(cache=True, nogil=True, forceinline=True)
def _find_left(hand):  # type: ignore[no-untyped-def]
    """Returns the cards of a hand that are in no meld of the best group."""
    if _find_runs(hand)[0] or _find_sets(hand)[0]:
        return hand & ~_choose_group(hand)
    return hand


@njit(cache=True, nogil=True, forceinline=True)
def _find_deadwood(hand):  # type: ignore[no-untyped-def]
    """Returns the deadwood of a hand with the card that was drawn: the highest one that is left may go."""
    left = _find_left(hand)
    return _value(left) - _highest(left) if left else 0


@njit(cache=True, nogil=True)
def _find_discards(hand, most):  # type: ignore[no-untyped-def]
    """Returns the cards without which a hand's deadwood is at most so much."""
    discards, cards = 0, hand
    while cards:
        card = cards & -cards
        if _value(_find_left(hand & ~card)) <= most:
            discards |= card
        cards &= ~card
    return discards


@njit(cache=True, nogil=True)
def _list_melds_to_lay(hand, most, actions, count):  # type: ignore[no-untyped-def]
    """Appends the melds of groups that leave at most so much deadwood; returns how many actions there are."""
    for meld in range(len(_CARDS_OF)):
        cards = _CARDS_OF[meld]
        if cards & ~hand == 0 and _value(_find_left(hand & ~cards)) <= most:
            actions[count] = _FIRST_MELD + meld
            count += 1
    return count


@njit(cache=True, nogil=True)
def _find_layoffs(melds, laid_off):  # type: ignore[no-untyped-def]
    """Returns the cards that can be added to melds.

    As in OpenSpiel, a run grows by at most two cards at an end.
    """
    layoffs = 0
    while melds:
        cards = _CARDS_OF[melds % _MELD_BASE - 1]
        melds //= _MELD_BASE
        rank = find_lowest(cards) % 13
        same = _ONE_RANK << rank
        if cards & ~same == 0:
            layoffs |= same & ~cards
            continue
        cards |= laid_off & _find_ends(cards)
        layoffs |= _find_ends(cards)
    return layoffs


@njit(cache=True, nogil=True)
def _find_ends(run):  # type: ignore[no-untyped-def]
    """Returns the cards next to a run, of its suit."""
    return ((run & _NO_ACE) >> 1 | (run & _NO_KING) << 1) & ~run


# -- actions -------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def _list_cards(cards, actions):  # type: ignore[no-untyped-def]
    """Writes cards as actions; returns how many there are."""
    count = 0
    while cards:
        actions[count] = find_lowest(cards)
        count += 1
        cards &= cards - 1
    return count


@njit(cache=True, nogil=True)
def legal(state, actions):  # type: ignore[no-untyped-def]
    phase, hand = state[_PHASE], state[_HANDS + max(state[PLAYER], 0)]
    if phase == _DEAL:
        return _list_cards(state[_DECK], actions)
    if phase == _FIRST_UPCARD:
        if state[_PASSED] == 2:
            actions[0] = _STOCK
            return 1
        actions[0], actions[1] = _TAKE, _PASS
        return 2
    if phase == _DRAW:
        actions[0], actions[1] = _TAKE, _STOCK
        return 2
    if phase == _DISCARD:
        count = _list_cards(hand, actions)
        if state[_DEADWOOD] <= state[_KNOCK]:
            actions[count] = _KNOCKING
            count += 1
        return count
    if phase == _WALL:
        actions[0], actions[1] = _PASS, _KNOCKING
        return 2 if _find_deadwood(hand | 1 << state[_UPCARD]) <= state[_KNOCK] else 1
    if phase == _LAY:
        if count_bits(hand) == state[_HAND_SIZE] + 1:
            return _list_cards(_find_discards(hand, state[_KNOCK]), actions)
        count = 0
        if _value(hand) <= state[_KNOCK]:
            actions[0] = _PASS
            count = 1
        return _list_melds_to_lay(hand, state[_KNOCK], actions, count)
    if state[_FINISHED]:
        actions[0] = _PASS
        return _list_melds_to_lay(hand, _MOST_DEADWOOD, actions, 1)
    count = _list_cards(hand & _find_layoffs(state[_MELDS], state[_LAID_OFF]), actions)
    actions[count] = _PASS
    return count + 1


@njit(cache=True, nogil=True, forceinline=True)
def draw(state, actions, noise):  # type: ignore[no-untyped-def]
    phase = state[_PHASE]
    if phase == _DRAW:
        return _TAKE + draw_below(noise, 2)
    if phase == _DISCARD:
        knocks = state[_DEADWOOD] <= state[_KNOCK]
        drawn = draw_below(noise, state[_HAND_SIZE] + 1 + knocks)
        return _pick(state[_HANDS + state[PLAYER]], drawn) if drawn <= state[_HAND_SIZE] else _KNOCKING
    if phase == _DEAL:
        return _pick(state[_DECK], draw_below(noise, count_bits(state[_DECK])))
    return np.int64(actions[draw_below(noise, legal(state, actions))])


@njit(cache=True, nogil=True, forceinline=True)
def apply(state, action):  # type: ignore[no-untyped-def]
    phase = state[_PHASE]
    if phase == _DRAW and action == _STOCK:
        _go_to_stock(state)
    elif phase == _DRAW:
        state[_TAKEN] += 1
        if state[_TAKEN] == _MOST_TAKEN:
            state[PLAYER] = ENDED
        else:
            _take(state)
    elif phase == _DISCARD:
        if action == _KNOCKING:
            _knock(state)
        else:
            _discard(state, action)
    elif phase == _DEAL:
        _deal(state, action)
    else:
        _apply_other(state, action)


@njit(cache=True, nogil=True, forceinline=True)
def _take(state):  # type: ignore[no-untyped-def]
    """Draws the upcard."""
    seat = state[PLAYER]
    state[_UPCARD_BEFORE] = state[_UPCARD]
    state[_HANDS + seat] |= 1 << state[_UPCARD]
    state[_UPCARD] = -1
    state[_MOVED] = seat
    state[_DEADWOOD] = _find_deadwood(state[_HANDS + seat])
    state[_PHASE] = _DISCARD


@njit(cache=True, nogil=True, forceinline=True)
def _go_to_stock(state):  # type: ignore[no-untyped-def]
    """Lets chance draw the card."""
    state[_UPCARD_BEFORE] = state[_UPCARD]
    state[_UPCARD] = -1
    state[_MOVED], state[PLAYER] = state[PLAYER], CHANCE
    state[_PHASE] = _DEAL


@njit(cache=True, nogil=True, forceinline=True)
def _deal(state, card):  # type: ignore[no-untyped-def]
    dealt, size = 52 - count_bits(state[_DECK]), state[_HAND_SIZE]
    state[_DECK] &= ~(1 << card)
    if dealt > 2 * size:
        seat = state[_MOVED]
        state[_HANDS + seat] |= 1 << card
        state[_DEADWOOD] = _find_deadwood(state[_HANDS + seat])
        state[PLAYER], state[_MOVED] = seat, CHANCE
        state[_PHASE] = _DISCARD
    elif dealt == 2 * size:
        state[_UPCARD] = card
        if state[_OKLAHOMA]:
            # An ace asks for gin.
            value = _highest(1 << card)
            state[_KNOCK] = value if value > 1 else 0
        state[PLAYER] = 0
        state[_PHASE] = _FIRST_UPCARD
    else:
        state[_HANDS + dealt // size] |= 1 << card


@njit(cache=True, nogil=True, forceinline=True)
def _discard(state, card):  # type: ignore[no-untyped-def]
    seat = state[PLAYER]
    state[_HANDS + seat] &= ~(1 << card)
    state[_UPCARD] = card
    state[_DEADWOOD] = 0
    state[_MOVED], state[PLAYER] = seat, 1 - seat
    repeated = card == state[_UPCARD_BEFORE]
    if repeated and state[_REPEATED]:
        state[PLAYER] = ENDED
        return
    state[_REPEATED] = repeated
    state[_PHASE] = _WALL if count_bits(state[_DECK]) == _WALL_STOCK else _DRAW


@njit(cache=True, nogil=True)
def _knock(state):  # type: ignore[no-untyped-def]
    """Ends the draws. A hand from which nothing may be discarded has no legal action: no result."""
    seat = state[PLAYER]
    state[_DEADWOOD] = 0
    state[_KNOCKED] = 1
    state[_MOVED] = seat
    state[_PHASE] = _LAY
    if _find_discards(state[_HANDS + seat], state[_KNOCK]) == 0:
        state[_KNOCKED] = 0
        state[PLAYER] = ENDED


@njit(cache=True, nogil=True)
def _apply_other(state, action):  # type: ignore[no-untyped-def]
    phase, seat = state[_PHASE], state[PLAYER]
    if phase == _FIRST_UPCARD:
        if action == _TAKE:
            _take(state)
        elif action == _STOCK:
            _go_to_stock(state)
        else:
            state[_PASSED] += 1
            state[_MOVED], state[PLAYER] = seat, 1 - seat
    elif phase == _WALL:
        if action == _KNOCKING:
            state[_HANDS + seat] |= 1 << state[_UPCARD]
            state[_UPCARD] = -1
            _knock(state)
        else:
            state[PLAYER] = ENDED
    elif action >= _FIRST_MELD:
        meld = action - _FIRST_MELD
        state[_HANDS + seat] &= ~_CARDS_OF[meld]
        if phase == _LAY:
            state[_MELDS] = state[_MELDS] * _MELD_BASE + meld + 1
    elif action < _TAKE:
        state[_HANDS + seat] &= ~(1 << action)
        if phase == _LAY_OFF:
            state[_LAID_OFF] |= 1 << action
    elif phase == _LAY:
        # Nothing is laid off on gin.
        state[_FINISHED] = state[_HANDS + seat] == 0
        state[PLAYER] = 1 - seat
        state[_PHASE] = _LAY_OFF
    elif state[_FINISHED]:
        state[PLAYER] = ENDED
    else:
        state[_FINISHED] = 1


@njit(cache=True, nogil=True)
def result(state):  # type: ignore[no-untyped-def]
    if not state[_KNOCKED]:
        return 0.0
    seat = state[_MOVED]
    deadwood = _value(state[_HANDS + seat])
    points = _value(state[_HANDS + 1 - seat]) - deadwood
    if deadwood == 0:
        points += state[_GIN]
    if points < 0:
        points -= state[_UNDERCUT]
    return float(points if seat == 0 else -points)


@njit(cache=True, nogil=True)
def utility(state):  # type: ignore[no-untyped-def]
    return float(_MOST_DEADWOOD + state[_GIN])
