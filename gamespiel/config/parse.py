"""Plain data (from a file) or text (from the command line) to the type a key declares, or a clear error."""

import dataclasses
import difflib
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal

import yaml

from gamespiel.config.errors import ConfigError, InvalidValueError, unknown
from gamespiel.config.yaml_text import read_yaml


def describe(hint: Any) -> str:
    """A type as a person would say it: `int | None` is "an integer or null"."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    simple = {bool: "true or false", int: "an integer", float: "a number", str: "text", type(None): "null"}
    if hint in simple:
        return simple[hint]
    if origin is Literal:
        return "one of " + ", ".join(repr(value) for value in args)
    if _is_union(hint):
        return " or ".join(describe(arg) for arg in args)
    if origin is tuple and args[-1] is Ellipsis:
        return f"a list (each: {describe(args[0])})"
    if origin is tuple:
        return f"a list of {len(args)} ({', '.join(describe(arg) for arg in args)})"
    if origin is dict:
        return "a mapping of names to " + describe(args[1])
    if dataclasses.is_dataclass(hint):
        return "a mapping with " + ", ".join(field.name for field in dataclasses.fields(hint))
    raise TypeError(f"no description for {hint!r}")


def parse_value(value: Any, hint: Any, where: str) -> Any:
    """`value`, as a JSON or YAML file gives it, as a `hint`; `where` names the key in errors."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if _is_union(hint):
        return _parse_union(value, hint, where)
    if dataclasses.is_dataclass(hint) and isinstance(hint, type) and isinstance(value, Mapping):
        return _parse_dataclass(value, hint, where)
    if origin is Literal:
        if any(type(value) is type(choice) and value == choice for choice in args):
            return value
    elif origin is tuple and isinstance(value, list | tuple):
        if args[-1] is Ellipsis:
            return tuple(parse_value(item, args[0], f"{where}[{i}]") for i, item in enumerate(value))
        if len(value) == len(args):
            pairs = zip(value, args, strict=True)
            return tuple(parse_value(item, arg, f"{where}[{i}]") for i, (item, arg) in enumerate(pairs))
    elif origin is dict and isinstance(value, Mapping):
        return {str(name): parse_value(item, args[1], f"{where}.{name}") for name, item in value.items()}
    elif hint is bool or hint is str or hint is type(None):
        if isinstance(value, hint):
            return value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if hint is float and math.isfinite(value):
            return float(value)
        if hint is int and value == value // 1:  # 1e4 steps are 10000 steps; infinity and NaN fail here
            return int(value)
    near = difflib.get_close_matches(str(value), args, n=1) if origin is Literal else []
    meant = f"; did you mean {near[0]!r}?" if near else ""
    raise InvalidValueError(f"{where} must be {describe(hint)}, not {value!r}{meant}")


def parse_text(text: str, hint: Any, where: str) -> Any:
    """`text`, as a command line gives it, as a `hint`: lists as `[a, b]` or `a,b`, mappings as `{a: 1}`."""
    options = typing.get_args(hint) if _is_union(hint) else (hint,)
    if type(None) in options and text in ("null", "none", "None"):
        return None
    if str in options or typing.get_origin(hint) is Literal:
        return parse_value(text, hint, where)
    listed = typing.get_origin(hint) is tuple and not text.lstrip().startswith("[")
    try:
        value = read_yaml(f"[{text}]" if listed else text)
    except yaml.YAMLError:
        value = text
    return parse_value(value, hint, where)


def check_range(value: Any, limits: Mapping[str, Any], where: str) -> None:
    """Checks a number, or each number in a list or dataclass, against the limits that its key declares."""
    if isinstance(value, tuple):
        for i, item in enumerate(value):
            check_range(item, limits, f"{where}[{i}]")
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            check_range(getattr(value, field.name), field.metadata, f"{where}.{field.name}")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        low, above, high = (limits.get(name) for name in ("at_least", "above", "at_most"))
        allowed = [f"at least {low}"] * (low is not None) + [f"above {above}"] * (above is not None)
        allowed += [f"at most {high}"] * (high is not None)
        inside = (low is None or value >= low) and (above is None or value > above)
        if not (inside and (high is None or value <= high)):
            raise InvalidValueError(f"{where} must be {' and '.join(allowed)}, not {value!r}")


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (types.UnionType, typing.Union)


def _parse_union(value: Any, hint: Any, where: str) -> Any:
    """The first option that fits, exact types first: 3 in `str | int | float | bool` stays 3."""
    options = typing.get_args(hint)
    exact = [option for option in options if option is type(value)]
    for option in [*exact, *(option for option in options if option not in exact)]:
        try:
            return parse_value(value, option, where)
        except InvalidValueError:
            continue
    raise InvalidValueError(f"{where} must be {describe(hint)}, not {value!r}")


def _parse_dataclass(value: Mapping[Any, Any], cls: type, where: str) -> Any:
    fields = {field.name: field for field in dataclasses.fields(cls)}
    hints = typing.get_type_hints(cls)
    parsed = {}
    for name, item in value.items():
        if name not in fields:
            raise unknown(f"key in {where}:", str(name), fields)
        parsed[name] = parse_value(item, hints[name], f"{where}.{name}")
    for name, field in fields.items():
        if name not in parsed and field.default is dataclasses.MISSING:
            raise ConfigError(f"{where}.{name} is missing: {describe(hints[name])}")
    return cls(**parsed)
