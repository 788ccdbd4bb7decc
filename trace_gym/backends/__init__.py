"""The backends that make traces; the environments see only ``trace_gym.backends.base``."""

from __future__ import annotations

from weakref import WeakValueDictionary

from trace_gym.backends.affinetes import AffinetesBackend, Answered
from trace_gym.backends.base import Trace, TraceBackend
from trace_gym.backends.local import LocalBackend
from trace_gym.programs.sources import Source, open_source

__all__ = ["AffinetesBackend", "Answered", "LocalBackend", "Trace", "TraceBackend", "make_backend"]

_backends: WeakValueDictionary[tuple[Source, str, bool, str], LocalBackend] = WeakValueDictionary()


def make_backend(source: str, injector: str, options: bool, require: str = "namespaces") -> LocalBackend:
    """Returns the local backend for a source; see ``LocalBackend``.

    The environments of a process share one backend for the same arguments, with its traces and its sandbox.
    Separate backends would each start workers and make the same traces again.

    Raises:
        ArgumentError: there is no such source.
        SourceError: the programs are not available.
    """
    key = open_source(source), injector, options, require
    backend = _backends.get(key)
    if backend is None:
        backend = _backends[key] = LocalBackend(*key)
    return backend
