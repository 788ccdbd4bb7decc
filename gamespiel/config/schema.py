"""The sections and keys as tables and as a JSON schema. Both are derived from the classes."""

import dataclasses
import typing
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from gamespiel.config.preset_files import presets
from gamespiel.config.sections import Config

SECTIONS: Mapping[str, type] = typing.get_type_hints(Config)
KEYS: Mapping[str, tuple[str, ...]] = {
    section: tuple(field.name for field in dataclasses.fields(cls)) for section, cls in SECTIONS.items()
}
SECTION_OF: Mapping[str, str] = {name: section for section, keys in KEYS.items() for name in keys}
"""The section of each key. Flat files are read with it, so no two sections share a key's name."""

DOTTED: tuple[str, ...] = tuple(f"{section}.{name}" for section, keys in KEYS.items() for name in keys)

PRESET = "preset"
"""The key of a file, outside its sections, that names the preset from which it starts."""

Node = Mapping[str, Any]
"""A JSON schema, or a part of one."""

_SIMPLE = dict(boolean="true or false", integer="an integer", number="a number", string="text", null="null")
_LIMITS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}


class _Untitled(GenerateJsonSchema):
    """Leaves out the titles, which repeat the keys' names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@cache
def _make_definitions() -> dict[str, Any]:
    """Returns the JSON schema of every class within ``Config``, by name."""
    made: dict[str, Any] = TypeAdapter(Config).json_schema(schema_generator=_Untitled)["$defs"]
    return made


def file_schema() -> dict[str, Any]:
    """Returns the JSON schema of a configuration file, which may have sections, flat keys, or both."""
    refs = {section: f"#/$defs/{cls.__name__}" for section, cls in SECTIONS.items()}
    flat = {name: f"{refs[section]}/properties/{name}" for name, section in SECTION_OF.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "GameSpiel configuration",
        "type": "object",
        "properties": {
            PRESET: {
                "description": "the preset from which this file starts: its own keys win",
                "enum": list(presets()),
            },
            **{name: {"$ref": ref} for name, ref in (refs | flat).items()},
        },
        "additionalProperties": False,
        "$defs": _make_definitions(),
    }


def node_of(section: str, path: Iterable[str | int]) -> Node:
    """Returns the schema of the value at ``path``: a key of the section, then indices and names within it."""
    node: Node = _make_definitions()[SECTIONS[section].__name__]
    for step in path:
        node = next(inner for option in resolve_members(node) if (inner := _find_child(option, step)))
    return node


def _find_child(node: Node, step: str | int) -> Node | None:
    if isinstance(step, int):
        return node["prefixItems"][step] if "prefixItems" in node else node.get("items")
    return node.get("properties", {}).get(step) or node.get("additionalProperties")


def resolve_members(node: Node) -> list[Node]:
    """Returns the members of a union, or else the schema itself, with references resolved."""
    members = node.get("anyOf", [node])
    return [_make_definitions()[m["$ref"].rpartition("/")[2]] if "$ref" in m else m for m in members]


def describe_type(node: Node) -> str:
    """Returns a type in words: "an integer or null"."""
    if "enum" in node:
        return "one of " + ", ".join(map(repr, node["enum"]))
    if "anyOf" in node:
        return " or ".join(map(describe_type, node["anyOf"]))
    if "$ref" in node:
        return "a mapping with " + ", ".join(resolve_members(node)[0]["properties"])
    if "prefixItems" in node:
        return f"a list of {len(node['prefixItems'])} ({', '.join(map(describe_type, node['prefixItems']))})"
    if "items" in node:
        return f"a list (each: {describe_type(node['items'])})"
    if "additionalProperties" in node:
        return "a mapping of names to " + describe_type(node["additionalProperties"])
    return _SIMPLE[node["type"]]


def describe_range(node: Node) -> str:
    """Returns the range of a number in words: "above 0 and at most 1"."""
    return " and ".join(
        f"{words} {option[name]}"
        for option in resolve_members(node)
        for name, words in _LIMITS.items()
        if name in option
    )
