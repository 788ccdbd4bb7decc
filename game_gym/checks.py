"""Checks of constructor arguments and reset options: each has its named error."""

from __future__ import annotations

from typing import Any

from game_gym.task import TaskSet
from task_gym.errors import ArgumentError, OptionError, TaskGymError
from task_gym.opponents import OPEN, find_opponent, make_opponent, playing_name


def check_max_turns(max_turns: Any) -> None:
    """None or at least 2: a game is never cut at its first step."""
    if max_turns is None:
        return
    if isinstance(max_turns, bool) or not isinstance(max_turns, int) or max_turns < 2:
        raise ArgumentError(
            f"max_turns: {max_turns!r} was given, allowed: None or a whole number of at least 2"
        )


def check_opponent(opponent: Any, tasks: TaskSet) -> None:
    """Raise unless this opponent exists and can play every game that may be drawn."""
    if opponent == OPEN:
        return
    find_opponent(opponent)
    for variant in (variant for variant in tasks.variants if variant.players > 1):
        make_opponent(playing_name(opponent, variant.game), variant.game, variant.spec, seat=0)


def read_opponent(options: dict[str, Any], tasks: TaskSet, opponent: str) -> str:
    """The opponent that reset options name, or ``opponent`` where they name none.

    Raises:
        OptionError: one that does not exist, or cannot play every game that may be drawn.
    """
    asked = options.get("opponent", opponent)
    if asked != opponent:  # the constructor's own was checked there
        try:
            check_opponent(asked, tasks)
        except TaskGymError as error:
            raise OptionError(f"reset option 'opponent': {error}") from error
    return str(asked)
