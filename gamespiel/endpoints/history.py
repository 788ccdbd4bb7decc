"""A game's actions as upstream's ``evaluate`` tells them: those that its model's bot was informed of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyspiel

from game_gym.spec import State, Variant


@dataclass(frozen=True, slots=True)
class SeatHistory:
    """A game as the model's seat has seen it.

    Attributes:
        actions: The actions in their order, each with ``player_id`` (-1 for chance), ``action``,
            ``action_str`` and ``is_llm``. Of a simultaneous move only the seat's own action is there.
        observation: OpenSpiel's observation of the seat just before the last of these actions; its text of
            the whole state in a game without observations; None if there was no action.
    """

    actions: list[dict[str, Any]]
    observation: str | None


def read_seat_history(variant: Variant, final: State, seat: int) -> SeatHistory:
    """Returns a game as a seat has seen it.

    Args:
        variant: The game.
        final: The state that it reached.
        seat: The seat.
    """
    state = variant.game.new_initial_state()
    moves = [(pair.player, pair.action) for pair in final.full_history()]
    actions: list[dict[str, Any]] = []
    observed: State = None
    while moves:
        together = state.is_simultaneous_node()
        count = variant.players if together else 1
        now, moves = moves[:count], moves[count:]
        for player, action in now:
            if action != pyspiel.INVALID_ACTION and (not together or player == seat):
                name = state.action_to_string(player, action)
                named = {"player_id": int(player), "action": int(action), "action_str": name}
                actions.append(named | {"is_llm": player == seat})
                observed = state.clone()
        if together:
            state.apply_actions([action for _, action in now])
        else:
            state.apply_action(now[0][1])
    return SeatHistory(actions, None if observed is None else _observe(observed, seat))


def _observe(state: State, seat: int) -> str:
    try:
        text: str = state.observation_string(seat)
    except (RuntimeError, ValueError):  # the game has no observations
        return str(state)
    return text
