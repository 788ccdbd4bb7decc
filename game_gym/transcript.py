"""A game move by move, from its recorded actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyspiel

from game_gym.spec import State, Variant

CHANCE: int = int(pyspiel.PlayerId.CHANCE)
"""The player of a chance move."""


@dataclass(frozen=True, slots=True)
class Move:
    """One recorded action.

    Attributes:
        player: The seat that made it, or ``CHANCE``.
        action: Its id.
        name: Its name at that point of the game.
    """

    player: int
    action: int
    name: str


def moves(variant: Variant, history: Sequence[int]) -> list[Move]:
    """Returns the moves of ``info["history"]``, in order.

    Seats that had no choice at a simultaneous move are left out.

    Raises:
        pyspiel.SpielError: an action is illegal in this game.
    """
    return [move for _, made in positions(variant, history) for move in made]


def positions(variant: Variant, history: Sequence[int]) -> Iterator[tuple[State, list[Move]]]:
    """Yields each state that players or chance left, with the moves that led out of it.

    The last item is the final state, with no moves. Simultaneous moves come together. The state is the same
    object each time, one move further.
    """
    state = variant.game.new_initial_state()
    rest = iter(history)
    for action in rest:
        if state.is_simultaneous_node():
            joint = [action, *(next(rest) for _ in range(variant.players - 1))]
            yield (
                state,
                [
                    Move(seat, chosen, state.action_to_string(seat, chosen))
                    for seat, chosen in enumerate(joint)
                    if chosen != pyspiel.INVALID_ACTION
                ],
            )
            state.apply_actions(joint)
        else:
            player = state.current_player()
            yield state, [Move(player, action, state.action_to_string(player, action))]
            state.apply_action(action)
    yield state, []
