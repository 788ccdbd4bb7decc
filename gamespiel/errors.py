"""Errors of configurations and options. Each message tells the reader what to change."""

import difflib
from collections.abc import Iterable

from task_gym import errors
from task_gym.errors import LONGEST, TaskGymError, shown


class ConfigError(TaskGymError):
    """A configuration that cannot be used; the message names the key, the value given and what is allowed."""


class UnknownKeyError(ConfigError):
    """A section, key, preset or option that does not exist."""


class InvalidValueError(ConfigError):
    """A value of the wrong type or out of its range."""


class NotBuiltError(ConfigError, errors.NotBuiltError):
    """A valid configuration that asks for an engine this version does not have."""


def unknown(kind: str, given: str, allowed: Iterable[str]) -> UnknownKeyError:
    """Returns the error for a name that is not allowed, with the nearest match or with all allowed names."""
    names, written = list(allowed), shown(given)
    ends = {name.rpartition(".")[2]: name for name in names}  # learning_rate may mean ppo.learning_rate
    near = difflib.get_close_matches(given[:LONGEST], names, n=1)
    near = near or [ends[end] for end in difflib.get_close_matches(given[:LONGEST], ends, n=1)]
    if near:
        hint = f"did you mean {near[0]!r}?"
    else:
        hint = f"allowed: {', '.join(names)}" if len(names) <= 12 else "--help lists what there is"
    return UnknownKeyError(f"unknown {kind} {written}; {hint}")
