"""Configurations that are valid but need an engine that this version does not have.

One row per missing engine: delete the row when the engine is built. Errors, ``--help``, the JSON schema and
the list of presets follow the table.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

from gamespiel.config.imports import import_modules
from gamespiel.config.sections import Config
from gamespiel.errors import NotBuiltError


class Missing(NamedTuple):
    """A missing engine: the key that asks for it, with which values, and what works today.

    Attributes:
        key: The key that asks for the engine.
        asks: Whether a value of the key asks for it.
        today: The value that works today.
        also: Keys that have an effect only with the engine.
    """

    key: str
    asks: Callable[[Any], bool]
    today: str
    also: tuple[str, ...] = ()


MISSING: tuple[Missing, ...] = ()


def missing(config: Config) -> dict[str, str]:
    """Returns the keys that ask for a missing engine, each with its value and what works today."""
    found = {}
    for row in MISSING:
        value = attrgetter(row.key)(config)
        if row.asks(value):
            found[row.key] = f"{row.key} = {value!r} (works today: {row.today})"
    return found


def require_built(config: Config) -> Config:
    """Returns ``config`` if this version can run it, and imports the modules of ``run.imports``.

    Raises:
        ConfigError: A module cannot be imported.
        NotBuiltError: Engines are missing; the message names every key that asks for one.
    """
    if rows := missing(config):
        raise NotBuiltError("not built yet: " + "; ".join(rows.values()))
    import_modules(config.run.imports)
    return config


def describe_missing(key: str) -> str:
    """Returns the addition to a key's help text: "" unless the key needs a missing engine."""
    for row in MISSING:
        if key == row.key:
            return f" (not built yet; works today: {row.today})"
        if key in row.also:
            return f" (not built yet: {row.key})"
    return ""
