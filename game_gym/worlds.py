"""Worlds: states that a seat, by what it knows, could as well be in.

OpenSpiel draws them for ten games of hidden information in which players move one at a time. The draw is
taken from it where its distribution follows from what the seat knows alone. Three games are left out, whose
worlds keep what the seat cannot see: euchre's the cards that nobody was dealt and the dealer's discard,
oh_hell's the cards that nobody was dealt, and colored_trails' the offer of the other proposer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from game_gym.spec import Game, State


def _always(game: Game) -> bool:
    return True


# OpenSpiel's names, each with the games of that name for which the draw is sound.
_DRAWN: Mapping[str, Callable[[Game], bool]] = {
    # With a chance of ending early the draw takes every chance outcome for the first one.
    "bargaining": lambda game: game.get_parameters()["prob_end"] == 0,
    "bridge": _always,
    "gin_rummy": _always,
    "hearts": _always,
    "kuhn_poker": _always,
    "leduc_poker": _always,
    # With more players the draw ends the process.
    "universal_poker": lambda game: game.num_players() == 2,
}

#: The games for which worlds can be drawn.
DRAWN = tuple(_DRAWN)


def has_worlds(game: Game) -> bool:
    """Whether :func:`draw_world` can be asked for this game's states."""
    sound = _DRAWN.get(game.get_type().short_name)
    return sound is not None and bool(sound(game))


def draw_world(state: State, seat: int, uniform: Callable[[], float]) -> State:
    """A state in which ``seat`` has seen the same, the rest drawn without regard to how it really is.

    What the others did is not taken for evidence of what they hold; in hearts not even that one of them
    could not follow suit. In gin_rummy the draw shuffles from the true order of the cards: equal random
    numbers can give two worlds for two states that the seat cannot tell apart, though one distribution.

    Args:
        state: A state of a game that :func:`has_worlds`, with ``seat`` to move.
        seat: Whose knowledge is kept.
        uniform: Draws from [0, 1).
    """
    return state.resample_from_infostate(seat, uniform)
