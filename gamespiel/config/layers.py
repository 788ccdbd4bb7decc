"""The layers of a configuration and which one wins: defaults < preset < files, in their order < overrides.

The later layer wins key by key, with one exception. The keys that choose the tasks belong together: a later
choice replaces the earlier one whole, and so does a later layer with another kind of task. Stages of a
curriculum that name tasks are such a choice too.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gamespiel.config.parse import parse, read_text
from gamespiel.config.schema import DOTTED, KEYS, SECTION_OF, SECTIONS
from gamespiel.config.sections import Config, EnvConfig, Stage
from gamespiel.errors import ConfigError, InvalidValueError, unknown
from gamespiel.kinds import KINDS
from gamespiel.kinds.base import TASK_IDS
from task_gym.errors import shown

CHOOSING = (*TASK_IDS, *(name for kind in KINDS.values() for name in kind.choosing))
"""Keys of ``env`` that each choose the tasks; only one may be given."""

REPLACED = (*CHOOSING, *(name for kind in KINDS.values() for name in kind.belonging))
"""Keys of ``env`` that a later choice of tasks replaces."""

NARROWING = tuple(name for kind in KINDS.values() for name in kind.narrowing)
"""Keys of ``env`` that a later choice of tasks keeps, and another kind of task does not."""


class Layer(NamedTuple):
    """Values of the declared types by section and key, and the name of their source."""

    name: str
    values: Mapping[str, Mapping[str, Any]]


def layer_from_data(data: Any, source: str = "config") -> Layer:
    """Returns a file's data as a layer. The data has sections, flat keys, or both."""
    if not isinstance(data, Mapping):
        raise InvalidValueError(f"{source}: must be a mapping of sections or keys, not {shown(data)}")
    sections: dict[str, dict[str, Any]] = {}
    for name, value in data.items():
        if name not in KEYS and name not in SECTION_OF:
            raise unknown(f"section or key in {source}:", str(name), [*KEYS, *SECTION_OF])
        section = SECTION_OF.get(name, name)
        if section == name and not isinstance(value, Mapping):
            raise InvalidValueError(
                f"{source}: section {name} must be a mapping of its keys, not {shown(value)}"
            )
        values = sections.setdefault(section, {})
        for key, item in (value if section == name else {name: value}).items():
            if key not in KEYS[section]:
                raise unknown(f"key in {source}:", f"{section}.{key}", _nearest_first(section))
            if key in values:
                raise ConfigError(f"{source}: {section}.{key} is given twice, in its section and outside")
            values[key] = item
    return Layer(source, {name: parse(name, values, f"{source}: ") for name, values in sections.items()})


def layer_from_overrides(overrides: Iterable[tuple[str, str]]) -> Layer:
    """Returns a layer of pairs such as ``("ppo.learning_rate", "2e-5")``; the last value of a key wins."""
    sections: dict[str, dict[str, Any]] = {}
    names = []
    for dotted, text in overrides:
        section, _, key = dotted.partition(".")
        if dotted not in DOTTED:
            raise unknown("option", f"--{dotted}", [f"--{name}" for name in _nearest_first(section)])
        value = parse(section, {key: read_text(text, section, key)}, "--")
        sections.setdefault(section, {}).update(value)
        names.append(f"--{dotted}")
    return Layer(", ".join(dict.fromkeys(names)), sections)


def merge(layers: Sequence[Layer]) -> Config:
    """Returns the defaults with the layers on top, first to last; ``validate`` has yet to check it."""
    merged: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    for layer in layers:
        env = layer.values.get("env", {})
        env_type = merged["env"].get("env_type", EnvConfig.env_type)
        dropped: tuple[str, ...] = ()
        if env.get("env_type", env_type) != env_type:
            dropped = (*REPLACED, *NARROWING)
        elif any(env.get(key) not in (None, ()) for key in CHOOSING):
            dropped = REPLACED
        elif any(_names_tasks(stage) for stage in layer.values.get("curriculum", {}).get("stages", ())):
            # Its stages choose the tasks; games by index take the place of the stages' own tasks.
            dropped = tuple(key for key in REPLACED if key != "allowed_game_indices")
        for key in dropped:
            merged["env"].pop(key, None)
        for section, values in layer.values.items():
            merged[section].update(values)
    return Config(**{section: cls(**merged[section]) for section, cls in SECTIONS.items()})


def _names_tasks(stage: Stage) -> bool:
    return stage.task_id_range is not None or bool(stage.task_ids)


def _nearest_first(section: str) -> list[str]:
    """Returns all dotted keys, those of ``section`` first: of two equally near names it offers its own."""
    return sorted(DOTTED, key=lambda name: not name.startswith(f"{section}."))
