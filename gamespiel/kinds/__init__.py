"""Kinds of task, one class each: ``games`` and ``traces``. ``kind`` is what they have in common.

The ``env`` section, its checks, ``--help``, the schema and the baselines' names follow from their attributes.
Every start of the command line imports these files. They import PyTorch, rich and their own backends inside
their functions.
"""

from collections.abc import Mapping
from typing import Any

from gamespiel.kinds.games.kind import GameKind
from gamespiel.kinds.keys import EnvKeys
from gamespiel.kinds.kind import Kind
from gamespiel.kinds.traces.kind import TraceKind

KINDS: Mapping[str, Kind[Any]] = {kind.env_type: kind for kind in (GameKind(), TraceKind())}
"""The kinds by ``env.env_type``."""


def kind_of(env: EnvKeys) -> Kind[Any]:
    """Returns the kind of task that ``env.env_type`` names."""
    return KINDS[env.env_type]
