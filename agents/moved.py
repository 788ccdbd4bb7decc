"""Modules by the names that they had before the rooms: each still imports, with a deprecation warning.

The names go with the next release.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

PACKAGE = "gamespiel.agents"

MOVED: Mapping[str, str] = {
    **dict.fromkeys(("adapters", "architectures", "snapshots", "weights"), "models"),
    **dict.fromkeys(("advantages", "divergence", "kl_control", "metrics", "schedules"), "learning"),
    **dict.fromkeys(("card", "checkpoint", "evaluation", "loggers", "seats", "stats"), "runs"),
    "noise": "sampling",
}
"""Module to the room that it is in now."""

RENAMED: Mapping[str, str] = {
    "plan": "models.memory_plan",
    "decoding": "tokens.codec",
    "decoding.codec": "tokens.codec",
    "decoding.trie": "tokens.trie",
}
"""Module to its new name."""


class _Finder(MetaPathFinder, Loader):
    """Finds a module under its old name, after every other finder."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        new = find_new_name(fullname)
        return None if new is None else ModuleSpec(fullname, self, is_package=fullname.endswith(".decoding"))

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        new = find_new_name(spec.name)
        assert new is not None
        warnings.warn(f"{spec.name} is {new} now", DeprecationWarning, stacklevel=2)
        module = ModuleType(spec.name, f"The old name of ``{new}``.")
        target = import_module(new)

        def get(name: str) -> Any:
            return getattr(target, name)

        module.__getattr__ = get  # type: ignore[method-assign]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing: names are looked up in the module of the new name."""


def find_new_name(name: str) -> str | None:
    """Returns the present full name of a module by its old one; None if it has not moved."""
    room, _, module = name.rpartition(f"{PACKAGE}.")
    if room or not name.startswith(f"{PACKAGE}."):
        return None
    new = RENAMED.get(module) or (f"{MOVED[module]}.{module}" if module in MOVED else None)
    return None if new is None else f"{PACKAGE}.{new}"


def keep_old_names() -> None:
    """Makes the old names importable; a second call changes nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
