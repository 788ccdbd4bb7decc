"""Named errors, and the phrases of their messages.

Every message says what was given, what is allowed and, if it helps, the nearest match.
Each error is built from one string, so that a worker process can hand it to its parent unchanged.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any


class TaskGymError(ValueError):
    """Base of every error raised by a task environment."""


class TaskIdError(TaskGymError):
    """A task id, or a set of task ids, that names no task that can be played."""


class GameError(TaskGymError):
    """A game, or a parameter of a game, that does not exist or has no declaration."""


class StateTextError(GameError):
    """A state of a game that a class of the user's choice fails to describe: the episode is a fault."""


class OpponentError(TaskGymError):
    """An opponent that does not exist, or cannot play this game."""


class OpponentActionError(OpponentError):
    """An opponent answered with an illegal action, or with something that is not a whole number."""


class OpponentFaultError(OpponentError):
    """An opponent that broke down in mid-game, as a search whose process ended: the episode is a fault."""


class SearchTimeError(OpponentFaultError):
    """An opponent's search beyond the time that it may take: the episode is a fault, never a weaker move."""


class ArgumentError(TaskGymError):
    """A constructor argument outside what is allowed."""


class OptionError(TaskGymError):
    """A reset option that does not exist, or a value outside the declared set."""


class SeedError(TaskGymError):
    """A seed outside 0 … 2**32 - 1, or one from which a protocol would reach above that."""


class BackendError(TaskGymError):
    """A server that was never reached, refuses what it was asked, or cannot be called from here."""


class IllegalActionError(TaskGymError):
    """An illegal action in an environment that was asked to raise on one."""


class EpisodeError(TaskGymError):
    """A call outside an episode: a step before the first reset or after the end."""


class PickleError(TaskGymError):
    """An environment that cannot be copied to another process, or whose copy differs from it."""


class TokenError(TaskGymError):
    """A text of too many tokens, or a token id that the encoder may not use."""


class LayoutError(TaskGymError):
    """An observation in another layout than a wrapper expects."""


class SourceError(TaskGymError):
    """Programs that cannot be had: a file, a data set or a row is missing or malformed."""


class AdmissionError(TaskGymError):
    """A program that is not fit for a question about its output."""


class SandboxError(TaskGymError):
    """Protection from programs that this machine or its operating system does not offer."""


class SamplerError(TaskGymError):
    """A sampler that cannot be reached, is in another process, or was handed the state of another one."""


class HistoryError(TaskGymError):
    """Recorded actions that a game does not have."""


class SizeError(TaskGymError):
    """A game that is too large for the evaluation that was asked for."""


class ProgramError(TaskGymError):
    """A text that is not a program, or a program that cannot be processed."""


class MissingPackageError(TaskGymError, ImportError):
    """Packages that an extra brings, and that are not installed."""


class ImportNameError(TaskGymError, ImportError):
    """A module imported by another name than its own."""


LONGEST = 200
"""The most characters of a given value that a message shows."""


def quote(value: object) -> str:
    """Returns a given value as a message shows it: its repr, cut if it is very long.

    >>> quote("x")
    "'x'"
    """
    try:
        text = repr(value)
    except Exception as error:  # Python writes no integer of more than 4,300 digits
        return f"{type(value).__name__} ({error})"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"


def nearest(value: object, allowed: Iterable[object]) -> str:
    """Returns the closest allowed spelling as a phrase, or "" if none is close.

    The spelling of a number, or of anything but a text, must be the same: 2048 may mean "2048", 11 not 1.

    >>> nearest("leduc", ["leduc_poker", "hex"])
    "; did you mean 'leduc_poker'?"
    """
    names = {str(name).lower(): str(name) for name in allowed}
    if isinstance(value, str):
        close = difflib.get_close_matches(value[:LONGEST].lower(), list(names), n=1, cutoff=0.5)
    else:
        close = [name for name in names if name == quote(value)]
    return f"; did you mean {names[close[0]]!r}?" if close else ""


def explain_unknown(what: str, value: Any, allowed: Iterable[object]) -> str:
    """Returns the message for a value outside a short list: the value, the list and the nearest match."""
    choices = list(allowed)
    listed = ", ".join(repr(choice) for choice in choices) if choices else "nothing"
    return f"{what}: {quote(value)} was given, allowed: {listed}{nearest(value, choices)}"


def illegal_action(mistake: str, legal: Sequence[int]) -> str:
    """Returns the message for an illegal action: what was given, and the first ten legal ids.

    >>> illegal_action("action: 7 was given", [0, 2])
    'action: 7 was given, legal: 0, 2'
    """
    listed = ", ".join(str(action) for action in legal[:10])
    more = f" and {len(legal) - 10} more" if len(legal) > 10 else ""
    return f"{mistake}, legal: {listed}{more}"


def check_choice(
    what: str, value: Any, allowed: Iterable[Any], error: type[TaskGymError] = ArgumentError
) -> None:
    """Raises ``error`` unless ``value`` is one of ``allowed``."""
    choices = list(allowed)
    if not any(type(value) is type(choice) and value == choice for choice in choices):
        raise error(explain_unknown(what, value, choices))
