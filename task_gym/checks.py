"""Checks of what callers give: whole numbers, actions, replies and backends."""

from __future__ import annotations

from math import isfinite
from operator import index
from typing import Any, TypeGuard

import numpy as np

from task_gym.errors import ArgumentError, TaskGymError, check_choice

BACKENDS = ("local", "affinetes")
"""The backends that have a name."""


def check_whole(what: str, given: Any, limit: int, error: type[TaskGymError]) -> int:
    """Returns ``given`` as an int, or raises ``error`` unless it is a whole number in 0 … limit - 1."""
    whole = type(given) is int or (isinstance(given, (int, np.integer)) and not isinstance(given, bool))
    if not (whole and 0 <= given < limit):
        raise error(f"{what}: {given!r} was given, allowed: whole numbers 0 … {limit - 1}")
    return int(given)


def is_number(given: Any) -> TypeGuard[int | float]:
    """Returns whether something is a finite number, and no boolean. A whole number must fit into a float."""
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        return False
    try:
        return isfinite(given)
    except OverflowError:
        return False


def check_backend(name: str) -> None:
    """Raises ArgumentError unless there is a backend of this name."""
    check_choice("backend", name, BACKENDS)


def read_action(action: Any) -> int:
    """Returns an action as an int, or raises ArgumentError unless it is a whole number."""
    try:
        return index(action)
    except TypeError as error:
        raise ArgumentError(f"action: {action!r} was given, allowed: a whole number") from error


def read_reply(action: Any) -> str:
    """Returns an action that is a reply as text, or raises ArgumentError."""
    if not isinstance(action, str):
        raise ArgumentError(f"action: {action!r} was given, allowed: a reply as text")
    return action
