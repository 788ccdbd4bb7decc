"""A game move by move, from its recorded actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyspiel

from game_gym.spec import State, Variant
from task_gym.errors import HistoryError, illegal_action, quote

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
        HistoryError: the game has no such history.
    """
    return [move for _, turn_moves in positions(variant, history) for move in turn_moves]


def positions(variant: Variant, history: Sequence[int]) -> Iterator[tuple[State, list[Move]]]:
    """Yields each state that players or chance left, with the moves that led out of it.

    The last item is the final state, with no moves. Simultaneous moves come together. The state is the same
    object each time, one move further.

    Raises:
        HistoryError: the game has no such history.
    """
    state = variant.game.new_initial_state()
    count = 0
    while count < len(history):
        action = history[count]
        if state.is_terminal():
            raise HistoryError(
                f"history: {len(history)} actions were given, and {variant.spec.name!r} is over after {count}"
            )
        if state.is_simultaneous_node():
            joint = list(history[count : count + variant.players])
            count += variant.players
            if len(joint) < variant.players:
                raise HistoryError(
                    f"history: it ends with {len(joint)} of the {variant.players} actions of a move in "
                    f"{variant.spec.name!r}"
                )
            for seat, chosen in enumerate(joint):
                _check_legal(variant, chosen, state.legal_actions(seat) or [pyspiel.INVALID_ACTION])
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
            # OpenSpiel's games need not survive an illegal action.
            _check_legal(variant, action, _list_legal(state))
            count += 1
            player = state.current_player()
            yield state, [Move(player, action, _name_move(variant, state, player, action))]
            state.apply_action(action)
    yield state, []


def _list_legal(state: State) -> list[int]:
    """Returns the actions that may follow: of chance its outcomes, of which ``legal_actions`` may lack some.

    Hearts without passing draws a direction all the same, and names only one as legal (OpenSpiel 2.0.2).
    """
    if state.is_chance_node():
        return [outcome for outcome, _ in state.chance_outcomes()]
    legal: list[int] = state.legal_actions()
    return legal


def _check_legal(variant: Variant, action: Any, legal: Sequence[int]) -> None:
    if type(action) is not int or action not in legal:
        message = illegal_action(f"history: action {quote(action)} was given", legal)
        raise HistoryError(f"{message}, in {variant.spec.name!r}")


def show(variant: Variant, state: State) -> str:
    """Returns the whole state as a spectator sees it, every seat's cards included."""
    return str(state) if variant.spec.show is None else variant.spec.show(state)


def _name_move(variant: Variant, state: State, player: int, action: int) -> str:
    name_chance = variant.spec.name_chance
    if player == CHANCE and name_chance is not None:
        return name_chance(state, action)
    name: str = state.action_to_string(player, action)
    return name
