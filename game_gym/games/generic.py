"""Declarations of all other OpenSpiel games, made from what a game says about itself.

The prompts are complete and leak nothing, but are no more readable than the game's own strings. A game that
matters deserves a declaration of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyspiel

from game_gym.spec import GameSpec, Params, State, load_quietly

_TYPE = pyspiel.GameType

# The games' names for the number of players.
_PLAYERS = ("players", "numPlayers", "num_players")

_UTILITIES = {
    _TYPE.Utility.ZERO_SUM: "The returns of all players add up to 0.",
    _TYPE.Utility.CONSTANT_SUM: "The returns of all players add up to the same in every game.",
    _TYPE.Utility.GENERAL_SUM: "The returns of the players need not add up to anything.",
    _TYPE.Utility.IDENTICAL: "All players have the same return.",
}


@lru_cache(maxsize=256)
def generic_spec(name: str) -> GameSpec:
    """Returns the declaration of a registered OpenSpiel game; the same object each time."""
    kind = next(kind for kind in pyspiel.registered_games() if kind.short_name == name)
    allowed: dict[str, tuple[Any, ...]] = {}
    for key, value in kind.parameter_specification.items():
        # Some games do not check the number of players, and end the process.
        counts = range(kind.min_num_players, kind.max_num_players + 1)
        allowed[key] = tuple(counts) if key in _PLAYERS else (value,)
    return GameSpec(
        name=name,
        rules=_rules_of(name, kind.parameter_specification),
        describe=describe,
        allowed=allowed,
        typed=frozenset(key for key in allowed if key not in _PLAYERS),
    )


def _rules_of(name: str, specification: Params) -> Callable[[Params], str]:
    def rules(params: Params) -> str:
        """Returns OpenSpiel's facts about any game: players, moves, chance, information and payment."""
        known = {key: value for key, value in params.items() if key in specification}
        game = load_quietly(name, known)
        kind = game.get_type()
        players = game.num_players()
        sequential = kind.dynamics == _TYPE.Dynamics.SEQUENTIAL
        settings = ", ".join(f"{key} = {_one_line(value)}" for key, value in sorted(known.items()))
        sentences = [
            f"{kind.long_name}, which OpenSpiel calls {name}{f', with {settings}' if settings else ''}.",
            f"{players} players, numbered from 0." if players > 1 else "One player, Player 0.",
            "One player moves at a time." if sequential else "All players choose at once, and move together.",
            "Nothing is left to chance."
            if kind.chance_mode == _TYPE.ChanceMode.DETERMINISTIC
            else "Chance plays a part.",
            "Everything is open."
            if kind.information == _TYPE.Information.PERFECT_INFORMATION
            else "Not everything is shown to everyone.",
            *([_UTILITIES[kind.utility]] if players > 1 else []),
            "The game pays at its end."
            if kind.reward_model == _TYPE.RewardModel.TERMINAL
            else "The game pays move by move, and the return is the sum.",
            f"Your return is between {game.min_utility():g} and {game.max_utility():g}; more is better.",
        ]
        return f"{sentences[0]}\n{' '.join(sentences[1:])}"

    return rules


def _one_line(value: Any) -> str:
    return " ".join(str(value).split())


def describe(state: State, seat: int) -> str:
    """Returns the game's own string of what the seat knows.

    It is the information state. In games that hide nothing the observation comes first, because it shows the
    position, while the information state often lists the moves. Without an information state it is
    only the observation. Without either it is the position in games that hide nothing, else the seat's own
    moves.
    """
    kind = state.get_game().get_type()
    is_open = kind.information == _TYPE.Information.PERFECT_INFORMATION
    parts = []
    if kind.provides_observation_string and (is_open or not kind.provides_information_state_string):
        parts.append(state.observation_string(seat))
    if kind.provides_information_state_string:
        parts.append(state.information_state_string(seat))
    if not parts:
        parts.append(str(state) if is_open else _own_moves(state, seat))
    return "\n".join(dict.fromkeys(part.strip("\n") for part in parts))


def _own_moves(state: State, seat: int) -> str:
    moves = [str(move.action) for move in state.full_history() if move.player == seat]
    return f"Your moves: {', '.join(moves) or 'none'}"
