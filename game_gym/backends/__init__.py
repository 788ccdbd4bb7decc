"""The backends that play games, one per file; the environment sees only :mod:`game_gym.backends.base`."""

from __future__ import annotations

from game_gym.backends.affinetes import AffinetesBackend
from game_gym.backends.base import Backend, Ending, Turn
from game_gym.backends.local import LocalBackend
from task_gym.checks import check_backend
from task_gym.remote import connect, read_settings
from task_gym.remote.settings import TIMEOUT, refuse_settings


def make_backend(
    name: str,
    seeding: str,
    rules: bool,
    mode: str | None = None,
    base_url: str | None = None,
    timeout: float = TIMEOUT,
) -> Backend:
    """Returns a new backend of this name; see :class:`LocalBackend` for the other arguments.

    Args:
        name: "local" or "affinetes".
        seeding: The seeding protocol.
        rules: Whether observations begin with the rules.
        mode: How a server is reached, of "affinetes" only; so are the two below.
        base_url: The server's address.
        timeout: Seconds that one call may take.

    Raises:
        TaskGymError: there is no such backend, or it cannot be used with these arguments.
    """
    check_backend(name)
    if name == "local":
        refuse_settings(mode, base_url, timeout)
        return LocalBackend(seeding, rules)
    settings = read_settings("url" if mode is None else mode, base_url, timeout)
    return AffinetesBackend(connect(settings), seeding, rules)


__all__ = ["AffinetesBackend", "Backend", "Ending", "LocalBackend", "Turn", "make_backend"]
