"""Values from a file or from the command line, checked by pydantic, with errors that name the key."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from pydantic import ValidationError

from gamespiel.config.schema import SECTIONS, describe_range, describe_type, node_of, resolve_members
from gamespiel.config.yaml_text import read_yaml
from gamespiel.errors import ConfigError, InvalidValueError, Mistakes, unknown_name_error
from task_gym.errors import shown

Place = Sequence[str | int]
"""The place of a value in a section: a key, then indices and names within the key's value."""


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
        made = SECTIONS[section](**values)
    except ValidationError as error:
        for path, problem in _find_problems(error, values):
            mistakes.add(_explain_problem(path, problem, section, prefix))
    mistakes.raise_all()
    return {key: getattr(made, key) for key in values}


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
    found: dict[tuple[str | int, ...], tuple[Place, Any]] = {}
    for problem in error.errors(include_url=False):
        path = tuple(_find_place(values, problem["loc"]))
        place = (*path, problem["loc"][-1]) if _lacks_part(problem) else path
        if place not in found or _is_of_type(found[place][1]) > _is_of_type(problem):
            found[place] = path, problem
    above = {place[:depth] for place in found for depth in range(len(place))}
    order = list(values)
    places = sorted(
        (place for place in found if place not in above), key=lambda place: order.index(str(place[0]))
    )
    return [found[place] for place in places]


def _is_of_type(problem: Any) -> bool:
    return str(problem["type"]).endswith("_type")


def _lacks_part(problem: Any) -> bool:
    """Returns whether a mapping lacks a key, whose name is not in the path then."""
    return problem["type"] == "missing" and isinstance(problem["input"], Mapping)


def _explain_problem(path: Place, problem: Any, section: str, prefix: str) -> ConfigError:
    """Returns the error of a problem, which names the key."""
    kind, given = problem["type"], problem["input"]
    given = list(given) if isinstance(given, tuple) else given  # as files write it
    if kind in ("unexpected_keyword_argument", "invalid_key"):
        *above, name = path
        allowed = resolve_members(node_of(section, above))[0]["properties"]
        return unknown_name_error(f"key in {prefix}{_format_path(section, above)}:", str(name), allowed)
    where, node = f"{prefix}{_format_path(section, path)}", node_of(section, path)
    if _lacks_part(problem):
        name = str(problem["loc"][-1])
        return ConfigError(f"{where}.{name} is missing: {describe_type(node_of(section, (*path, name)))}")
    if kind == "value_error":
        return InvalidValueError(f"{where} {problem['ctx']['error']}, not {shown(given)}")
    if kind.startswith(("greater_than", "less_than")):
        (limit,) = problem["ctx"].values()
        return InvalidValueError(f"{where} must be {describe_range(node)}, not {shown(type(limit)(given))}")
    name, colon, value = str(path[-1]).partition(":")
    if colon and given is None:
        return InvalidValueError(
            f"{prefix}{_format_path(section, (*path[:-1], name))} has no value; YAML wants a space after the "
            f"colon: {name}: {value}"
        )
    near = difflib.get_close_matches(shown(given).strip("'"), node.get("enum", ()), n=1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    return InvalidValueError(f"{where} must be {describe_type(node)}, not {shown(given)}{meant}")


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
