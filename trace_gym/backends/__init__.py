"""Where traces are made."""

from __future__ import annotations

from task_gym.errors import NotBuiltError, check_choice
from trace_gym.backends.local import LocalBackend, Trace

__all__ = ["LocalBackend", "Trace", "make_backend"]


def make_backend(name: str, source: str, injector: str, options: bool) -> LocalBackend:
    """The backend of this name; see :class:`LocalBackend` for the arguments.

    Raises:
        ArgumentError, NotBuiltError: no such backend, or none yet.
    """
    if name == "affinetes":
        raise NotBuiltError("backend: 'affinetes' was given, which is not built yet; allowed now: 'local'")
    check_choice("backend", name, ("local", "affinetes"))
    return LocalBackend(source, injector, options)
