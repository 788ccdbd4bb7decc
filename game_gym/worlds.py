"""Worlds: the states that a seat, by what it knows, may be in.

OpenSpiel draws worlds for ten games of hidden information in which players move one at a time. GameSpiel uses
the draw if its distribution follows only from what the seat knows. Three games are left out, because their
worlds keep what the seat cannot see: in euchre the cards that nobody was dealt and the dealer's discard, in
oh_hell the cards that nobody was dealt, and in colored_trails the offer of the other proposer.
"""

from __future__ import annotations

from collections.abc import Callable

from game_gym.spec import Game, State

DRAWN = ("bargaining", "bridge", "gin_rummy", "hearts", "kuhn_poker", "leduc_poker", "universal_poker")
"""The games for which worlds can be drawn."""


def has_worlds(game: Game) -> bool:
    """Returns whether ``draw_world`` can draw for this game's states."""
    name = game.get_type().short_name
    if name == "bargaining":  # the draw takes every chance outcome to be the first one: no early end
        return bool(game.get_parameters()["prob_end"] == 0)
    if name == "universal_poker":  # with more players the draw ends the process
        return bool(game.num_players() == 2)
    return name in DRAWN


def draw_world(state: State, seat: int, uniform: Callable[[], float]) -> State:
    """Draws a state in which ``seat`` has seen the same; the rest does not depend on the true state.

    The draw ignores what the others' moves say about their cards; in hearts even that one of them could not
    follow suit. In gin_rummy the draw shuffles from the true order of the cards. Equal random numbers can
    then give different worlds for two states that the seat cannot tell apart, but the distribution is the
    same.

    Args:
        state: A state of a game for which ``has_worlds`` is true, with ``seat`` to move.
        seat: The seat whose knowledge is kept.
        uniform: Draws from [0, 1).
    """
    return state.resample_from_infostate(seat, uniform)
