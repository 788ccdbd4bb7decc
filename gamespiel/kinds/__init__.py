"""Kinds of task, one file each: ``games.py`` and ``traces.py``.

A third kind is one more file here, and a change nowhere else. The file declares the kind's keys in the
``env`` section, and ends in ``KIND``: an object of a class derived from ``base.Kind``, which lists what a
kind declares and does. The section, its checks, ``--help``, the schema and the baselines' names follow.

Every start of the command line imports these files. They import PyTorch, rich and their own backends inside
their functions.
"""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from gamespiel.kinds.base import EnvKeys, Kind

_FILES = sorted(module.name for module in iter_modules(__path__) if module.name != "base")
_DECLARED: list[Kind[Any]] = [import_module(f"{__name__}.{name}").KIND for name in _FILES]

KINDS: Mapping[str, Kind[Any]] = {kind.env_type: kind for kind in _DECLARED}
"""The kinds by ``env.env_type``."""


def kind_of(env: EnvKeys) -> Kind[Any]:
    """Returns the kind of task that ``env.env_type`` names."""
    return KINDS[env.env_type]
