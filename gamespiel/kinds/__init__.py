"""Kinds of task: one file for games, one for code tracing.

A third kind is a file here and its entry in ``kind_of``. Its keys and its name go into ``gamespiel/config``
(sections, checks, layers), and the names of its baselines into ``gamespiel/options.py``.
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
    if env.env_type == "openspiel":
        from gamespiel.kinds.games import Games

        return Games()
    raise AssertionError(f"no kind of task is called {env.env_type!r}")
