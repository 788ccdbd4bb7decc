"""Kinds of task: one file for games, one for code tracing.

A third kind is a file here, an entry in ``kind_of``, and keys in the configuration's ``env`` section.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gamespiel.config.sections import EnvConfig

if TYPE_CHECKING:
    from gamespiel.kinds.base import Kind


def kind_of(env: EnvConfig) -> Kind:
    """Returns the kind of task that ``env.env_type`` names."""
    # Imported on demand: each kind loads the libraries that its tasks need.
    if env.env_type == "trace":
        from gamespiel.kinds.traces import Traces

        return Traces()
    from gamespiel.kinds.games import Games

    return Games()
