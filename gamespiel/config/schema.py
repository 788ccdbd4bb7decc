"""The sections and keys as tables, read off the dataclasses, so that nothing is listed twice."""

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any

from gamespiel.config.sections import Config

SECTIONS: Mapping[str, type] = typing.get_type_hints(Config)
KEYS: Mapping[str, Mapping[str, dataclasses.Field[Any]]] = {
    section: {field.name: field for field in dataclasses.fields(cls)} for section, cls in SECTIONS.items()
}
HINTS: Mapping[str, Mapping[str, Any]] = {
    section: typing.get_type_hints(cls) for section, cls in SECTIONS.items()
}
SECTION_OF: Mapping[str, str] = {name: section for section, keys in KEYS.items() for name in keys}
"""The one section that has a key: this is how a flat file is read, so no two sections share a key's name."""

DOTTED: tuple[str, ...] = tuple(f"{section}.{name}" for section, keys in KEYS.items() for name in keys)


def default_of(field: dataclasses.Field[Any]) -> Any:
    """A field's default, also when a factory makes it."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default
