"""Kinds of task, one package or file each: ``games`` and ``traces``. ``base`` is what they have in common.

A third kind is one more file here, and a change nowhere else. The file ends in ``KIND``: a ``base.Kind`` of a
declaration, a player and a presenter, whose base classes say what a kind declares and does. The ``env``
section, its checks, ``--help``, the schema and the baselines' names follow from the declaration.

Every start of the command line imports these files. They import PyTorch, rich and their own backends inside
their functions.
"""

from collections.abc import Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from gamespiel.kinds.base import Declaration, EnvKeys, Kind

_NAMES = sorted(module.name for module in iter_modules(__path__) if module.name != "base")
_DECLARED: list[Kind[Any]] = [import_module(f"{__name__}.{name}").KIND for name in _NAMES]

KINDS: Mapping[str, Kind[Any]] = {kind.declaration.env_type: kind for kind in _DECLARED}
"""The kinds by ``env.env_type``."""

DECLARATIONS: Mapping[str, Declaration[Any]] = {name: kind.declaration for name, kind in KINDS.items()}
"""Their declarations, which are all that configuration and options ask for."""


def kind_of(env: EnvKeys) -> Kind[Any]:
    """Returns the kind of task that ``env.env_type`` names."""
    return KINDS[env.env_type]


def declaration_of(env: EnvKeys) -> Declaration[Any]:
    """Returns the declaration of the kind of task that ``env.env_type`` names."""
    return DECLARATIONS[env.env_type]
