"""Other values for names of another library's module, within a context."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any


@contextmanager
def replace_names(module: ModuleType, **values: Any) -> Iterator[None]:
    """Gives names of a module other values within the context."""
    before = {name: getattr(module, name) for name in values}
    vars(module).update(values)
    try:
        yield
    finally:
        vars(module).update(before)
