"""The backends that play games, one per file; the environment sees only :mod:`game_gym.backends.base`."""

from __future__ import annotations

from game_gym.backends.base import Backend, Ending, Turn
from game_gym.backends.local import LocalBackend
from task_gym.checks import check_backend


def make_backend(name: str, seeding: str, rules: bool) -> Backend:
    """Returns a new backend of this name; see :class:`LocalBackend` for the other arguments.

    Raises:
        ArgumentError: there is no such backend.
        NotBuiltError: it is planned, and not built yet.
    """
    check_backend(name)
    return LocalBackend(seeding, rules)


__all__ = ["Backend", "Ending", "LocalBackend", "Turn", "make_backend"]
