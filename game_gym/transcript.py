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
                    Move(seat, chosen, _name_move(variant, state, seat, chosen))
                    for seat, chosen in enumerate(joint)
                    if chosen != pyspiel.INVALID_ACTION
                ],
            )
            state.apply_actions(joint)
        else:
            player = state.current_player()
            yield state, [Move(player, action, _name_move(variant, state, player, action))]
            state.apply_action(action)
    yield state, []


def show(variant: Variant, state: State) -> str:
    """Returns the whole state as a spectator sees it, every seat's cards included."""
    return str(state) if variant.spec.show is None else variant.spec.show(state)


def _name_move(variant: Variant, state: State, player: int, action: int) -> str:
    name_chance = variant.spec.name_chance
    if player == CHANCE and name_chance is not None:
        return name_chance(state, action)
    name: str = state.action_to_string(player, action)
    return name
