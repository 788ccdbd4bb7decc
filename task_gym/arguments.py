"""Checks of what callers give: whole numbers, actions, replies and backends."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from inspect import Parameter, signature
from math import isfinite
from numbers import Real
from operator import index
from typing import Any, TypeGuard

import numpy as np

from task_gym.errors import ArgumentError, TaskGymError, check_choice, explain_unknown, quote

BACKENDS = ("local", "affinetes")
"""The backends that have a name."""


def check_whole(what: str, value: Any, limit: int, error: type[TaskGymError]) -> int:
    """Returns ``value`` as an int, or raises ``error`` unless it is a whole number in 0 … limit - 1."""
    whole = type(value) is int or is_whole(value)
    if not (whole and 0 <= value < limit):
        raise error(f"{what}: {quote(value)} was given, allowed: whole numbers 0 … {limit - 1}")
    return int(value)


def is_whole(value: Any) -> TypeGuard[int | np.integer[Any]]:
    """Returns whether something is a whole number of any type, and no boolean."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def check_least(what: str, value: Any, least: int) -> int:
    """Returns ``value`` as an int, or raises ArgumentError unless it is a whole number from ``least`` on."""
    if not is_whole(value) or value < least:
        raise ArgumentError(f"{what}: {quote(value)} was given, allowed: whole numbers of at least {least}")
    return int(value)


def is_number(value: Any) -> TypeGuard[int | float]:
    """Returns whether something is a finite number, and no boolean. A whole number must fit into a float."""
    if isinstance(value, bool) or not isinstance(value, Real):  # NumPy's numbers are Real too
        return False
    try:
        return isfinite(value)
    except OverflowError:
        return False


def check_names(kind: type, names: Iterable[str], more: Collection[str]) -> None:
    """Raises ArgumentError unless an environment's constructors take arguments of these names.

    Args:
        kind: The environment's class. A base's constructor counts too if it takes further arguments by name.
        names: Names of arguments.
        more: The names that it takes besides.
    """
    wrong = [name for name in names if name not in more]
    if not wrong:
        return
    named: dict[str, None] = {}
    for base in kind.__mro__:
        declared = signature(vars(base)["__init__"]).parameters.values() if "__init__" in vars(base) else ()
        if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in declared):
            named |= {
                parameter.name: None
                for parameter in declared
                if parameter.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
                and parameter.name != "self"
            }
    for name in wrong:
        if name not in named:
            raise ArgumentError(explain_unknown("argument", name, [*named, *more]))


def check_backend(name: str) -> None:
    """Raises ArgumentError unless there is a backend of this name."""
    check_choice("backend", name, BACKENDS)


def read_action(action: Any) -> int:
    """Returns an action as an int, or raises ArgumentError unless it is a whole number."""
    try:
        return index(action)
    except TypeError as error:
        raise ArgumentError(f"action: {quote(action)} was given, allowed: a whole number") from error


def read_reply(action: Any) -> str:
    """Returns an action that is a reply as text, or raises ArgumentError."""
    if not isinstance(action, str):
        raise ArgumentError(f"action: {quote(action)} was given, allowed: a reply as text")
    return action
