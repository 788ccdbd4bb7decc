"""The interface of compiled rules: what each module of them defines.

A module of ``game_gym.opponents.fast`` has the rules of one OpenSpiel game, compiled by Numba, for search.
Its states are arrays of whole numbers, and its actions are OpenSpiel's. It defines:

- ``STATE``: numbers of a state;
- ``ACTIONS``: the most legal actions that a state can have;
- ``read(state)``: an OpenSpiel state as an array of int64, (STATE,);
- ``player(state)``: the seat to move, 0 or 1, or ``CHANCE``, or ``ENDED``;
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

ENDED = -4
"""``player`` of a game that has ended; ``pyspiel.PlayerId.TERMINAL``."""

CHANCE = -1
"""``player`` if chance moves; ``pyspiel.PlayerId.CHANCE``."""
