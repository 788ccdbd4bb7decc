"""Other states that a seat cannot tell from a given one: what leak tests compare with.

Three ways. Each takes (state, seat, rng) at a state where the seat is to move, and returns a state of the
same game, or None if it found none.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from typing import Any

State = Any
Resampler = Callable[[State, int, random.Random], State | None]

#: Exchanges tried by ``exchanged``.
EXCHANGES = 6

#: States visited by ``redrawn`` before it gives up.
VISITS = 3000


def openspiel(state: State, seat: int, rng: random.Random) -> State:
    """OpenSpiel's own, for the games that have it (it prints and raises in the others).

    In gin_rummy it changes the hands and leaves the history as it was, in euchre the dealer's discard.
    """
    return state.resample_from_infostate(seat, rng.random)


def exchanged(state: State, seat: int, rng: random.Random) -> State | None:
    """Two cards change places throughout the history, time and again: for games where chance deals cards.

    The seat's own moves stay. An exchange holds if what the seat knew at each of its decisions, and what it
    could do, stays too.
    """
    game = state.get_game()
    cards = range(game.max_chance_outcomes())
    moves = [(move.player, move.action) for move in state.full_history()]
    known = _memories(state, seat)
    found = None
    for _ in range(EXCHANGES):
        one, two = rng.sample(cards, 2)
        swap = {one: two, two: one}
        others = [(who, action if who == seat else swap.get(action, action)) for who, action in moves]
        other = _unnoticed(game, others, seat, known) if others != moves else None
        if other is not None:
            moves, found = others, other
    return found


def redrawn(state: State, seat: int, rng: random.Random) -> State | None:
    """Chance and the other seats draw again, in a random search over histories: for small games.

    The seat's moves stay, and so does all that it gets to know, in the same order. The others may move more
    or less often, where the seat does not notice.
    """
    known, own = _learnt(state, seat)
    visits = 0

    def search(other: State, seen: int, moved: int) -> State | None:
        """From ``other``, where the seat knows ``known[seen]`` and has made ``moved`` moves."""
        nonlocal visits
        visits += 1
        asked = _is_asked(other, seat)
        if asked and moved == len(own):
            return other if seen == len(known) - 1 else None
        if other.is_terminal() or visits > VISITS:
            return None
        branches = _branches(other, seat, own[moved]) if asked else [[a] for a in other.legal_actions()]
        rng.shuffle(branches)
        for branch in branches:
            child = other.clone()
            _apply(child, branch)
            knows = child.information_state_string(seat)
            for now in (seen, seen + 1):
                if now < len(known) and knows == known[now]:
                    found = search(child, now, moved + asked)
                    if found is not None:
                        return found
        return None

    return search(state.get_game().new_initial_state(), 0, 0)


def _learnt(state: State, seat: int) -> tuple[list[str], list[int]]:
    """The seat's knowledge on the way to a state, without repeats, and the moves it made."""
    game = state.get_game()
    other = game.new_initial_state()
    known, own = [other.information_state_string(seat)], []
    history = state.history()
    while history:
        count = game.num_players() if other.is_simultaneous_node() else 1
        joint, history = history[:count], history[count:]
        if _is_asked(other, seat):
            own.append(joint[seat if count > 1 else 0])
        _apply(other, joint)
        knows = other.information_state_string(seat)
        if knows != known[-1]:
            known.append(knows)
    return known, own


def _is_asked(state: State, seat: int) -> bool:
    return state.is_simultaneous_node() or state.current_player() == seat


def _branches(state: State, seat: int, own: int) -> list[list[int]]:
    """The moves from a turn of the seat, whose own move is given."""
    if not state.is_simultaneous_node():
        return [[own]]
    players = range(state.get_game().num_players())
    return [
        list(joint) for joint in product(*([own] if p == seat else state.legal_actions(p) for p in players))
    ]


def _apply(state: State, moves: list[int]) -> None:
    if state.is_simultaneous_node():
        state.apply_actions(moves)
    else:
        state.apply_action(moves[0])


def _memories(state: State, seat: int) -> list[tuple[str, list[int]]]:
    """The seat's knowledge and choices at each decision on the way to a state, the last included."""
    other, memories = state.get_game().new_initial_state(), []
    for action in state.history():
        if other.current_player() == seat:
            memories.append(_memory(other, seat))
        other.apply_action(action)
    return [*memories, _memory(state, seat)]


def _memory(state: State, seat: int) -> tuple[str, list[int]]:
    return state.information_state_string(seat), state.legal_actions(seat)


def _unnoticed(
    game: Any, moves: list[tuple[int, int]], seat: int, known: list[tuple[str, list[int]]]
) -> State | None:
    """The state after a history of (player, action); None if it is not legal or the seat notices."""
    state, left = game.new_initial_state(), iter(known)
    for player, action in moves:
        if player != state.current_player() or action not in state.legal_actions():
            return None
        if player == seat and _memory(state, seat) != next(left):
            return None
        state.apply_action(action)
    return state if state.current_player() == seat and _memory(state, seat) == next(left) else None
