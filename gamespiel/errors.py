"""Errors of configurations and options. Each message tells the reader what to change."""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from task_gym.errors import LONGEST, TaskGymError, quote


class ConfigError(TaskGymError):
    """A configuration that cannot be used; the message names the key, the value given and what is allowed."""


class UnknownKeyError(ConfigError):
    """A section, key, preset or option that does not exist."""


class InvalidValueError(ConfigError):
    """A value of the wrong type or out of its range."""


MOST_SHOWN = 50
"""The most mistakes that one message lists."""


class MistakesError(ConfigError):
    """Several mistakes of one configuration: the message has a line for each.

    Attributes:
        mistakes: The error of each mistake, in the order of the layers and of the keys in each.
    """

    mistakes: tuple[ConfigError, ...] = ()


class Mistakes:
    """A collection of errors, so that one message can name all of them."""

    def __init__(self) -> None:
        self.errors: list[ConfigError] = []

    def add(self, error: ConfigError) -> None:
        """Adds an error, or each of those that another collection raised together."""
        self.errors += error.mistakes if isinstance(error, MistakesError) else [error]

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Adds the ``ConfigError`` that ends the context, if one does, and goes on behind it."""
        try:
            yield
        except ConfigError as error:
            self.add(error)

    def raise_all(self) -> None:
        """Raises what was collected; nothing if that is nothing.

        Raises:
            ConfigError: the one error that was collected, as it is.
            MistakesError: several; the message names the first ``MOST_SHOWN``.
        """
        errors = list({str(error): error for error in self.errors}.values())
        if not errors:
            return
        if len(errors) == 1:
            raise errors[0]
        lines = ["  " + " ".join(str(error).split()) for error in errors[:MOST_SHOWN]]
        if len(errors) > MOST_SHOWN:
            lines.append(f"  and {len(errors) - MOST_SHOWN:,} more")
        together = MistakesError("\n".join([f"{len(errors):,} mistakes:", *lines]))
        together.mistakes = tuple(errors)
        raise together


def unknown_name_error(
    kind: str, unknown_name: str, allowed: Iterable[str], *, listed: bool = False
) -> UnknownKeyError:
    """Returns the error for a name that is not allowed, with the nearest match or with all allowed names.

    Args:
        kind: The kind of name, as "option".
        unknown_name: The name.
        allowed: All allowed names.
        listed: Whether the message has all allowed names in any case.
    """
    names, written = list(allowed), quote(unknown_name)
    ends = {name.rpartition(".")[2]: name for name in names}  # learning_rate may mean ppo.learning_rate
    near = difflib.get_close_matches(unknown_name[:LONGEST], names, n=1)
    near = near or [ends[end] for end in difflib.get_close_matches(unknown_name[:LONGEST], ends, n=1)]
    hints = [f"did you mean {near[0]!r}?"] if near else []
    if listed or not (near or len(names) > 12):
        hints.append(f"allowed: {', '.join(names)}")
    return UnknownKeyError(f"unknown {kind} {written}; {' '.join(hints or ['--help lists what there is'])}")
