"""Other values for names of another library's module, within a context."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_lock = threading.RLock()
"""Held within a context: of two threads, each would restore the other's values."""


@contextmanager
def replace_names(module: ModuleType, **values: Any) -> Iterator[None]:
    """Gives names of a module other values within the context."""
    with _lock:
        before = {name: getattr(module, name) for name in values}
        vars(module).update(values)
        try:
            yield
        finally:
            vars(module).update(before)
