"""Checks of constructor arguments, seeds and reset options: each has its named error."""

from __future__ import annotations

from typing import Any

from game_gym.task import Task, TaskSet
from task_gym.errors import ArgumentError, OptionError, TaskGymError, nearest
from task_gym.opponents import OPEN, find_opponent, make_opponent, playing_name

#: What ``reset(options=...)`` may hold.
OPTIONS = ("task_id", "opponent")


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


def read_options(options: dict[str, Any] | None, tasks: TaskSet, opponent: str) -> tuple[Task | None, str]:
    """The task that reset options name (None: draw one) and the opponent, ``opponent`` where they name none.

    Raises:
        OptionError: an unknown option, or a value outside the declared set.
    """
    task = None
    for name, value in (options or {}).items():
        if name == "task_id":
            task = find_task(value, tasks)
        elif name == "opponent":
            opponent = _other_opponent(value, tasks, opponent)
        else:
            raise OptionError(
                f"reset option {name!r} was given, allowed: {', '.join(OPTIONS)}{nearest(name, OPTIONS)}"
            )
    return task, opponent


def _other_opponent(value: Any, tasks: TaskSet, opponent: str) -> str:
    if value != opponent:  # the constructor's own was checked there
        try:
            check_opponent(value, tasks)
        except TaskGymError as error:
            raise OptionError(f"reset option 'opponent': {error}") from error
    return str(value)


def find_task(task_id: Any, tasks: TaskSet) -> Task:
    """The task of this id, or an OptionError where the declared set does not hold it."""
    try:
        task = tasks.find(task_id)
    except TaskGymError as error:
        raise OptionError(f"reset option 'task_id': {error}") from error
    if task is None:
        raise OptionError(f"reset option 'task_id': {task_id!r} was given, allowed: {tasks}")
    return task
