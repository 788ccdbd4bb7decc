"""Checks of constructor arguments and reset options, each with its named error."""

from __future__ import annotations

from typing import Any

from game_gym.task import TaskSet
from task_gym.arguments import is_whole
from task_gym.errors import ArgumentError, OptionError, TaskGymError, quote
from task_gym.opponents import OPEN, find_opponent, make_opponent, opponent_searches, playing_name


def check_max_turns(max_turns: Any) -> None:
    """Raises ArgumentError unless this is None or at least 2: a game is never cut at its first step."""
    if max_turns is not None and (not is_whole(max_turns) or max_turns < 2):
        raise ArgumentError(
            f"max_turns: {quote(max_turns)} was given, allowed: None or a whole number of at least 2"
        )


def check_opponent(opponent: Any, tasks: TaskSet) -> None:
    """Raises OpponentError unless this opponent exists and can play every game that may be drawn."""
    if isinstance(opponent, str) and opponent == OPEN:
        return
    find_opponent(opponent)
    for variant in (variant for variant in tasks.variants if variant.players > 1):
        make_opponent(playing_name(opponent, variant.game), variant.game, variant.spec, seat=0)


def opponent_may_search(opponent: str, tasks: TaskSet) -> bool:
    """Returns whether an opponent searches in a game that may be drawn: in some, another one plays."""
    return opponent_searches(opponent) and any(
        variant.players > 1 and opponent_searches(playing_name(opponent, variant.game))
        for variant in tasks.variants
    )


def read_seat(options: dict[str, Any], opponent: str, local: bool) -> int | None:
    """Returns the seat that reset options name; None if they name none: then the seed decides.

    Raises:
        OptionError: it is no whole number of at least 0, every seat is the caller's, or a server chooses.
    """
    seat = options.get("seat")
    if seat is None:
        return None
    if not is_whole(seat) or seat < 0:
        raise OptionError(f"reset option 'seat': {quote(seat)} was given, allowed: whole numbers from 0")
    if opponent == OPEN or not local:
        why = "leaves every seat to the caller" if local else "is one of a server, which chooses the seat"
        raise OptionError(f"reset option 'seat': {seat} was given, and this game {why}; leave it out")
    return int(seat)


def read_list_actions(options: dict[str, Any], default: bool) -> bool:
    """Returns whether reset options have the episode list the legal actions; ``default`` if they do not say.

    Raises:
        OptionError: it is no truth value.
    """
    option = options.get("list_actions")
    if option is None:
        return default
    if not isinstance(option, bool):
        raise OptionError(f"reset option 'list_actions': {quote(option)} was given, allowed: True or False")
    return option


def read_opponent(options: dict[str, Any], tasks: TaskSet, opponent: str) -> str:
    """Returns the opponent that reset options name, or ``opponent``, the constructor's, if they name none.

    Raises:
        OptionError: there is no such opponent, or it cannot play every game that may be drawn.
    """
    name = options.get("opponent", opponent)
    if isinstance(name, str) and name == opponent:
        return opponent
    try:
        check_opponent(name, tasks)
    except TaskGymError as error:
        raise OptionError(f"reset option 'opponent': {error}") from error
    return str(name)
