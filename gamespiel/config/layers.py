"""Where values come from and which wins: defaults < preset < files, in their order < command line.

A layer is `{section: {key: value}}`, with values already of the declared type. The later layer wins key by
key, but for the keys that choose the tasks, where the later choice replaces the earlier one whole; so it does
where a later layer changes the kind of task.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gamespiel.config.errors import ConfigError, InvalidValueError, unknown
from gamespiel.config.parse import parse_text, parse_value
from gamespiel.config.schema import DOTTED, HINTS, KEYS, SECTION_OF, SECTIONS
from gamespiel.config.sections import Config, EnvConfig

Layer = Mapping[str, Mapping[str, Any]]

GAME_CHOICE = ("task_id", "task_ids", "game", "allowed_game_indices")
"""Keys of `env` that each choose the games; only one may hold."""

TRACE_CHOICE = ("source", "level", "family")
"""Keys of `env` that say which programs are traced, among the tasks that task_id or task_ids name."""


def layer_from_data(data: Any, source: str = "config") -> Layer:
    """A layer from a file's data: by sections, or flat (a key's section is known by its name), or both."""
    if not isinstance(data, Mapping):
        raise InvalidValueError(f"{source}: must be a mapping of sections or keys, not {data!r}")
    layer: dict[str, dict[str, Any]] = {}
    for name, value in data.items():
        if name in KEYS:
            if not isinstance(value, Mapping):
                raise InvalidValueError(
                    f"{source}: section {name} must be a mapping of its keys, not {value!r}"
                )
            for key, item in value.items():
                if key not in KEYS[name]:
                    raise unknown(f"key in {source}:", f"{name}.{key}", _nearest_first(name))
                _put(layer, name, key, item, source)
        elif name in SECTION_OF:
            _put(layer, SECTION_OF[name], name, value, source)
        else:
            raise unknown(f"section or key in {source}:", str(name), [*KEYS, *SECTION_OF])
    return layer


def layer_from_overrides(overrides: Iterable[tuple[str, str]]) -> Layer:
    """A layer from `("ppo.learning_rate", "2e-5")` pairs; of a key given twice, the last wins."""
    layer: dict[str, dict[str, Any]] = {}
    for dotted, text in overrides:
        section, _, key = dotted.partition(".")
        if section not in KEYS or key not in KEYS[section]:
            names = _nearest_first(section) if section in KEYS else DOTTED
            raise unknown("option", f"--{dotted}", [f"--{name}" for name in names])
        value = parse_text(text, HINTS[section][key], f"--{dotted}")
        layer.setdefault(section, {})[key] = value
    return layer


def merge(layers: Sequence[Layer]) -> Config:
    """The configuration that the layers, first to last, make of the defaults. Not yet validated."""
    merged: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for layer in layers:
        env = layer.get("env", {})
        chosen = [key for key in GAME_CHOICE if env.get(key) not in (None, ())]
        kind = merged["env"].get("env_type", EnvConfig.env_type)
        changed = env.get("env_type", kind) != kind
        if chosen or changed:
            for key in (*GAME_CHOICE, "params", *(TRACE_CHOICE if changed else ())):
                merged["env"].pop(key, None)
        for section, values in layer.items():
            merged[section].update(values)
    return Config(**{section: cls(**merged[section]) for section, cls in SECTIONS.items()})


def _put(layer: dict[str, dict[str, Any]], section: str, key: str, value: Any, source: str) -> None:
    values = layer.setdefault(section, {})
    if key in values:
        raise ConfigError(f"{source}: {section}.{key} is given twice, in its section and outside")
    values[key] = parse_value(value, HINTS[section][key], f"{source}: {section}.{key}")


def _nearest_first(section: str) -> list[str]:
    """All dotted keys, those of `section` first, so that among equally near names its own are offered."""
    return sorted(DOTTED, key=lambda name: not name.startswith(f"{section}."))
