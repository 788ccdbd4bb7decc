"""The layers of a configuration and which one wins: defaults < preset < files, in their order < overrides.

The later layer wins key by key, with one exception. The keys that choose the tasks belong together: a later
choice replaces the earlier one whole, and so does a later layer with another kind of task. Stages of a
curriculum that name tasks are such a choice too.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from gamespiel.config.schema import DOTTED, KEYS, PRESET, SECTION_OF, SECTIONS, parse_section, read_text
from gamespiel.config.sections import Config, EnvConfig
from gamespiel.config.synonyms import explain
from gamespiel.errors import ConfigError, InvalidValueError, Mistakes, UnknownKeyError, unknown_name_error
from gamespiel.kinds import KINDS
from gamespiel.kinds.keys import TASK_IDS
from task_gym.errors import quote

CHOOSING = (*TASK_IDS, *(name for kind in KINDS.values() for name in kind.choosing))
"""Keys of ``env`` that each choose the tasks; only one may be given."""

REPLACED = (*CHOOSING, *(name for kind in KINDS.values() for name in kind.belonging))
"""Keys of ``env`` that a later choice of tasks replaces."""

NARROWING = tuple(name for kind in KINDS.values() for name in kind.narrowing)
"""Keys of ``env`` that a later choice of tasks keeps, and another kind of task does not."""


class Layer(NamedTuple):
    """Values of the declared types by section and key, and what is known of their source.

    Attributes:
        name: The source.
        values: The values.
        preset: The preset that it names to start from.
    """

    name: str
    values: Mapping[str, Mapping[str, Any]]
    preset: str | None = None


def layer_from_data(data: Any, source: str = "config") -> Layer:
    """Returns a file's data as a layer. The data has sections, flat keys, or both.

    Raises:
        ConfigError: A key is unknown or given twice, or a value is bad; ``MistakesError`` for several.
    """
    if not isinstance(data, Mapping):
        raise InvalidValueError(f"{source}: must be a mapping of sections or keys, not {quote(data)}")
    mistakes = Mistakes()
    preset = None
    if PRESET in data:
        with mistakes.collect():
            preset = _check_preset(data[PRESET], source)
        data = {name: value for name, value in data.items() if name != PRESET}
    sections: dict[str, dict[str, Any]] = {}
    for name, value in data.items():
        named, items = (name, value) if name in KEYS else (None, {name: value})
        if not isinstance(items, Mapping):
            wrong = f"{source}: section {name} must be a mapping of its keys, not {quote(value)}"
            mistakes.add(InvalidValueError(wrong))
            continue
        for key, item in items.items():
            with mistakes.collect():
                section = _find_section(named, key, source)
                if key in sections.setdefault(section, {}):
                    twice = f"{section}.{key} is given twice, in its section and outside"
                    raise ConfigError(f"{source}: {twice}")
                sections[section][key] = item
    typed: dict[str, Mapping[str, Any]] = {}
    for section, values in sections.items():
        with mistakes.collect():
            typed[section] = parse_section(section, values, f"{source}: ")
    mistakes.raise_all()
    return Layer(source, typed, preset)


def _check_preset(name: Any, source: str) -> str:
    """Returns the name of the preset that a file starts from, which need not exist.

    Raises:
        InvalidValueError: It is no name, or that of a file.
    """
    if not isinstance(name, str):
        raise InvalidValueError(f"{source}: {PRESET} must be the name of a preset, not {quote(name)}")
    if "/" in name or name.endswith((".yaml", ".yml", ".json")):
        raise InvalidValueError(
            f"{source}: {PRESET} must be the name of a preset, not the file {quote(name)}; files are given "
            f"one after the other, as --config {name} {source}"
        )
    return name


def layer_from_overrides(overrides: Iterable[tuple[str, str]]) -> Layer:
    """Returns a layer of pairs such as ``("ppo.learning_rate", "2e-5")``; the last value of a key wins.

    Raises:
        ConfigError: An option is unknown, or a value is bad; ``MistakesError`` for several.
    """
    sections: dict[str, dict[str, Any]] = {}
    names, mistakes = [], Mistakes()
    for dotted, text in overrides:
        with mistakes.collect():
            place = find_option(dotted)
            if place is None:
                nearest = _nearest_first(dotted.partition(".")[0])
                raise explain_unknown_option(f"--{dotted}", [f"--{name}" for name in nearest])
            section, key = place
            value = parse_section(section, {key: read_text(text, section, key)}, "--")
            sections.setdefault(section, {}).update(value)
            names.append(f"--{dotted}")
    mistakes.raise_all()
    return Layer(", ".join(dict.fromkeys(names)), sections)


def _find_section(section: str | None, name: str, source: str) -> str:
    """Returns the section of a file's key.

    Args:
        section: The section that has it; None for a flat key.
        name: The key.
        source: The name of the file.

    Raises:
        UnknownKeyError: There is no such key, or in another section.
    """
    key_section = SECTION_OF.get(name)
    if key_section is not None and section in (None, key_section):
        return key_section
    full_name = str(name) if section is None else f"{section}.{name}"
    if (why := explain(name)) is not None:
        raise UnknownKeyError(f"unknown key in {source}: {full_name!r}{why}")
    if section is None:
        raise unknown_name_error(f"section or key in {source}:", full_name, [*KEYS, *SECTION_OF, PRESET])
    raise unknown_name_error(f"key in {source}:", full_name, _nearest_first(section))


def find_option(dotted: str) -> tuple[str, str] | None:
    """Returns the section and the key that an option sets; None if it sets none."""
    section, _, name = dotted.partition(".")
    return (section, name) if dotted in DOTTED else None


def explain_unknown_option(option: str, allowed: Iterable[str]) -> UnknownKeyError:
    """Returns the error for an option that does not exist, also if it is another library's word."""
    why = explain(option.removeprefix("--").rpartition(".")[2], option=True)
    if why is not None:
        return UnknownKeyError(f"unknown option {option!r}{why}")
    return unknown_name_error("option", option, allowed)


def merge_layers(layers: Sequence[Layer]) -> Config:
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
        elif any(
            stage.task_id_range or stage.task_ids
            for stage in layer.values.get("curriculum", {}).get("stages", ())
        ):
            # Its stages choose the tasks; games by index take the place of the stages' own tasks.
            dropped = tuple(key for key in REPLACED if key != "allowed_game_indices")
        for key in dropped:
            merged["env"].pop(key, None)
        for section, values in layer.values.items():
            merged[section].update(values)
    return Config(**{section: cls(**merged[section]) for section, cls in SECTIONS.items()})


def _nearest_first(section: str) -> list[str]:
    """Returns all dotted keys, those of ``section`` first: of two equally near names it offers its own."""
    return sorted(DOTTED, key=lambda name: not name.startswith(f"{section}."))
