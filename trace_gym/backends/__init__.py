"""Where traces are made."""

from __future__ import annotations

from weakref import WeakValueDictionary

from task_gym.errors import NotBuiltError, check_choice
from trace_gym.backends.local import LocalBackend, Trace
from trace_gym.programs.sources import Source, open_source

__all__ = ["LocalBackend", "Trace", "make_backend"]

_made: WeakValueDictionary[tuple[Source, str, bool], LocalBackend] = WeakValueDictionary()


def make_backend(name: str, source: str, injector: str, options: bool) -> LocalBackend:
    """The backend of this name, with the source that a text means; see :class:`LocalBackend`.

    The environments of a process share one for the same arguments, and so its traces and its sandbox: many at
    a time would start as many workers, and make the same traces as many times.

    Raises:
        ArgumentError, NotBuiltError: no such backend, or none yet.
    """
    if name == "affinetes":
        raise NotBuiltError("backend: 'affinetes' was given, which is not built yet; allowed now: 'local'")
    check_choice("backend", name, ("local", "affinetes"))
    key = open_source(source), injector, options
    backend = _made.get(key)
    if backend is None:
        backend = _made[key] = LocalBackend(*key)
    return backend
