"""Where games are played. One file a backend; the environment sees only :mod:`game_gym.backends.base`."""

from __future__ import annotations

from game_gym.backends.base import Backend, Ending, Turn
from game_gym.backends.local import LocalBackend
from task_gym.errors import ArgumentError, NotBuiltError, unknown

#: Every backend that has a name.
BACKENDS = ("local", "affinetes")


def make_backend(name: str, seeding: str, rules: bool) -> LocalBackend:
    """The backend of this name.

    Raises:
        ArgumentError: there is none.
        NotBuiltError: it is planned and not there yet.
    """
    if name == "local":
        return LocalBackend(seeding, rules)
    if name == "affinetes":
        raise NotBuiltError("backend: 'affinetes' was given, which is not built yet; allowed now: 'local'")
    raise ArgumentError(unknown("backend", name, BACKENDS))


__all__ = ["BACKENDS", "Backend", "Ending", "LocalBackend", "Turn", "make_backend"]
