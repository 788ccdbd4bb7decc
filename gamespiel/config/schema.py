"""The sections and keys as tables and as a JSON schema, both derived from the classes, and the presets.

Values from a file or from the command line are checked by pydantic, with errors that name the key.
"""

import dataclasses
import difflib
import typing
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from gamespiel.config.sections import Config
from gamespiel.config.yaml_text import read_yaml
from gamespiel.errors import ConfigError, InvalidValueError, Mistakes, unknown_name_error
from task_gym.errors import quote

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

Place = Sequence[str | int]
"""The place of a value in a section: a key, then indices and names within the key's value."""

_SIMPLE = dict(boolean="true or false", integer="an integer", number="a number", string="text", null="null")
_LIMITS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}


def presets() -> tuple[str, ...]:
    """Returns the names of the presets."""
    return tuple(sorted(path.stem for path in _preset_dir().glob("*.yaml")))


def preset_path(name: str) -> Path:
    """Returns the file of a preset.

    Raises:
        UnknownKeyError: There is no such preset; the message names the nearest one, and all.
    """
    if name not in presets():
        raise unknown_name_error("preset", name, presets(), listed=True)
    return _preset_dir() / f"{name}.yaml"


def _preset_dir() -> Path:
    """Returns ``configs/``: inside the package when installed, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "configs"
    return installed if installed.is_dir() else package.parent / "configs"


class _Untitled(GenerateJsonSchema):
    """Leaves out the titles, which repeat the keys' names."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


@cache
def _make_definitions() -> dict[str, Any]:
    """Returns the JSON schema of every class within ``Config``, by name."""
    definitions: dict[str, Any] = TypeAdapter(Config).json_schema(schema_generator=_Untitled)["$defs"]
    return definitions


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


def parse_section(section: str, values: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Returns ``values`` with the types that the section declares.

    Args:
        section: The section that has these keys.
        values: Plain data by key.
        prefix: Text before the key in errors: "mine.json: " or "--".

    Raises:
        ConfigError: A value has the wrong type, is out of its range, or lacks a part.
        MistakesError: Several are so.
    """
    mistakes = Mistakes()
    try:
        section_config = SECTIONS[section](**values)
    except ValidationError as error:
        for path, problem in _find_problems(error, values):
            mistakes.add(_explain_problem(path, problem, section, prefix))
    mistakes.raise_all()
    return {key: getattr(section_config, key) for key in values}


def read_text(text: str, section: str, key: str) -> Any:
    """Returns the data in an option's text: a list as ``[a, b]`` or ``a,b``, a mapping as ``{a: 1}``."""
    kinds = {option["type"] for option in resolve_members(node_of(section, [key]))}
    if "null" in kinds and text in ("null", "none", "None"):
        return None
    if "string" in kinds and not ("object" in kinds and text.lstrip().startswith("{")):
        return text
    if "array" not in kinds and not text.strip():
        return text  # YAML would read it as null
    listed = "array" in kinds and not text.lstrip().startswith("[")
    try:
        return read_yaml(f"[{text}]" if listed else text)
    except (yaml.YAMLError, ValueError, RecursionError):  # a number of thousands of digits is a ValueError
        return text


def _find_problems(error: ValidationError, values: Mapping[str, Any]) -> list[tuple[Place, Any]]:
    """Returns the problems that are mistakes, each with its place.

    Each member of a union has a problem of its own. The member that fits best fails deepest, or not by its
    type.
    """
    problems: dict[tuple[str | int, ...], tuple[Place, Any]] = {}
    for problem in error.errors(include_url=False):
        path = tuple(_find_place(values, problem["loc"]))
        place = (*path, problem["loc"][-1]) if _lacks_part(problem) else path
        if place not in problems or _is_of_type(problems[place][1]) > _is_of_type(problem):
            problems[place] = path, problem
    above = {place[:depth] for place in problems for depth in range(len(place))}
    order = list(values)
    places = sorted(
        (place for place in problems if place not in above), key=lambda place: order.index(str(place[0]))
    )
    return [problems[place] for place in places]


def _is_of_type(problem: Any) -> bool:
    return str(problem["type"]).endswith("_type")


def _lacks_part(problem: Any) -> bool:
    """Returns whether a mapping lacks a key, whose name is not in the path then."""
    return problem["type"] == "missing" and isinstance(problem["input"], Mapping)


def _explain_problem(path: Place, problem: Any, section: str, prefix: str) -> ConfigError:
    """Returns the error of a problem, which names the key."""
    kind, entry = problem["type"], problem["input"]
    entry = list(entry) if isinstance(entry, tuple) else entry  # as files write it
    if kind in ("unexpected_keyword_argument", "invalid_key"):
        *above, name = path
        allowed = resolve_members(node_of(section, above))[0]["properties"]
        return unknown_name_error(f"key in {prefix}{_format_path(section, above)}:", str(name), allowed)
    where, node = f"{prefix}{_format_path(section, path)}", node_of(section, path)
    if _lacks_part(problem):
        name = str(problem["loc"][-1])
        return ConfigError(f"{where}.{name} is missing: {describe_type(node_of(section, (*path, name)))}")
    if kind == "value_error":
        return InvalidValueError(f"{where} {problem['ctx']['error']}, not {quote(entry)}")
    if kind.startswith(("greater_than", "less_than")):
        (limit,) = problem["ctx"].values()
        return InvalidValueError(f"{where} must be {describe_range(node)}, not {quote(type(limit)(entry))}")
    name, colon, value = str(path[-1]).partition(":")
    if colon and entry is None:
        return InvalidValueError(
            f"{prefix}{_format_path(section, (*path[:-1], name))} has no value; YAML wants a space after the "
            f"colon: {name}: {value}"
        )
    near = difflib.get_close_matches(quote(entry).strip("'"), node.get("enum", ()), n=1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    return InvalidValueError(f"{where} must be {describe_type(node)}, not {quote(entry)}{meant}")


def _find_place(data: Any, loc: Sequence[str | int]) -> Place:
    """Returns the part of a problem's location that is in the data; names of union members are not."""
    path: list[str | int] = []
    for step in loc:
        if isinstance(data, Mapping) and step in data:
            path.append(str(step))
        elif isinstance(data, list | tuple) and isinstance(step, int) and step < len(data):
            path.append(step)
        else:
            continue
        data = data[step]
    return path


def _format_path(section: str, path: Place) -> str:
    """Returns a path as it is written: ``env.task_ids[1][0]``."""
    return section + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
