"""Kinds of task, one package each: ``games`` and ``traces``. ``base`` is what they have in common.

The ``env`` section, its checks, ``--help``, the schema and the baselines' names follow from the declarations.
Every start of the command line imports these files. They import PyTorch, rich and their own backends inside
their functions.
"""

from collections.abc import Mapping
from typing import Any

from gamespiel.kinds import games, traces
from gamespiel.kinds.base import Declaration, EnvKeys, Kind

KINDS: Mapping[str, Kind[Any]] = {kind.declaration.env_type: kind for kind in (games.KIND, traces.KIND)}
"""The kinds by ``env.env_type``."""

DECLARATIONS: Mapping[str, Declaration[Any]] = {name: kind.declaration for name, kind in KINDS.items()}
"""Their declarations, which are all that configuration and options ask for."""


def kind_of(env: EnvKeys) -> Kind[Any]:
    """Returns the kind of task that ``env.env_type`` names."""
    return KINDS[env.env_type]


def declaration_of(env: EnvKeys) -> Declaration[Any]:
    """Returns the declaration of the kind of task that ``env.env_type`` names."""
    return DECLARATIONS[env.env_type]
