"""Reading and writing configurations: files, presets, and their resolution with overrides."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic_core import to_jsonable_python

from gamespiel.config.checks import validate
from gamespiel.config.layers import Layer, find_option, layer_from_data, layer_from_overrides, merge_layers
from gamespiel.config.schema import preset_path, presets
from gamespiel.config.sections import Config, EnvConfig
from gamespiel.config.yaml_text import read_yaml, write_yaml
from gamespiel.errors import ConfigError, Mistakes, UnknownKeyError
from gamespiel.kinds import KINDS, kind_of
from gamespiel.kinds.keys import TASK_IDS
from task_gym.files import read_file, write_atomically

DEFAULT_PRESETS = {name: kind.preset for name, kind in KINDS.items() if kind.preset is not None}
"""By env_type, the preset that is trained when neither a preset nor a file is named."""

DEFAULT_PRESET = DEFAULT_PRESETS[EnvConfig.env_type]

SAVED_NAME = "config.yaml"
"""The file in a run's folder that has the run's resolved configuration."""


class Resolved(NamedTuple):
    """A configuration, its layers in words ("preset tiny, --run.seed"), and notices about them."""

    config: Config
    layers: str
    notices: tuple[str, ...] = ()


def resolve(
    preset: str | None = None,
    files: Sequence[str | Path | Layer] = (),
    overrides: Iterable[tuple[str, str]] = (),
    *,
    base: Config | None = None,
) -> Config:
    """Returns the validated configuration: defaults (or ``base``) < preset < files < overrides.

    A file may name the preset itself, with its key ``preset``.

    Args:
        preset: The name of a preset.
        files: JSON or YAML files, or what was read from them; later ones win.
        overrides: Pairs such as ``("ppo.learning_rate", "2e-5")``.
        base: A configuration in the place of the defaults.

    Raises:
        ConfigError: A layer cannot be read, has an unknown key or a bad value, or the layers do not fit.
        MistakesError: There are several such mistakes.
    """
    return resolve_layers(preset, files, overrides, base=base).config


def resolve_layers(
    preset: str | None = None,
    files: Sequence[str | Path | Layer] = (),
    overrides: Iterable[tuple[str, str]] = (),
    *,
    base: Config | None = None,
    base_name: str = "a given configuration",
) -> Resolved:
    """Does as ``resolve``, and also returns the layers in words, ``base_name`` for ``base``."""
    mistakes = Mistakes()
    with mistakes.collect():
        _ = None if preset is None else preset_path(preset)
    file_layers: list[Layer] = []
    for file in files:
        with mistakes.collect():
            file_layers.append(file if isinstance(file, Layer) else read_layer(file))
    below = [layer_from_data(to_dict(base), base_name)] if base is not None else []
    with mistakes.collect():
        below += _read_preset(preset, file_layers)
    layers = [*(below or [Layer("defaults", {})]), *file_layers]
    with mistakes.collect():
        layers.append(layer_from_overrides(overrides))
    mistakes.raise_all()
    return Resolved(validate(merge_layers(layers)), ", ".join(layer.name for layer in layers if layer.name))


def _read_preset(preset: str | None, files: Sequence[Layer]) -> list[Layer]:
    """Returns the layer of the preset that the option or a file names; [] if none does.

    Raises:
        ConfigError: There is no such preset, or two are named.
    """
    named = [("--preset", preset), *((layer.name, layer.preset) for layer in files)]
    named = [(source, name) for source, name in named if name is not None]
    if not named:
        return []
    first, preset = named[0]
    for source, name in named:
        if name != preset:
            two = f"{first} names {preset!r}, and {source} names {name!r}"
            raise ConfigError(f"a configuration starts from one preset: {two}")
    try:
        path = preset_path(str(preset))
    except UnknownKeyError as error:
        raise error if first == "--preset" else UnknownKeyError(f"{first}: {error}") from error
    layer = read_layer(path)
    return [layer._replace(name=f"preset {preset}")]


def resolve_pretrained(preset: str, overrides: Iterable[tuple[str, str]]) -> Resolved:
    """Returns the configuration of a model that a preset is not for: its tasks, and otherwise the defaults.

    A notice names the keys that the preset would have set, because another model needs other values of them.

    Raises:
        ConfigError: As ``resolve``.
    """
    whole, overrides = resolve(preset), list(overrides)
    tasks = ("env_type", *TASK_IDS, *kind_of(whole.env).choice)
    base = Config(env=EnvConfig(**{name: getattr(whole.env, name) for name in tasks}))
    name = f"defaults for pretrained models, tasks of preset {preset}"
    resolved = resolve_layers(None, (), overrides, base=base, base_name=name)
    keys, model = {find_option(dotted) for dotted, _ in overrides}, resolved.config.model.model_name
    values = to_dict(base)
    taken = [
        f"{section}.{key} {json.dumps(value)}"
        for section, section_values in to_dict(whole).items()
        for key, other in section_values.items()
        if other != (value := values[section][key]) and (section, key) not in keys
    ]
    own_presets = [f"--preset {name}" for name in presets() if resolve(name).model.model_name == model]
    better = f" For this model there is {' or '.join(own_presets)}." if own_presets else ""
    notice = (
        f"preset {preset} is for the model {whole.model.model_name}; {model or repr('')} takes the defaults: "
        f"{', '.join(taken)}.{better}"
    )
    return resolved._replace(notices=(*resolved.notices, notice))


def from_dict(data: Any, source: str = "config", *, base: Config | None = None) -> Config:
    """Returns the validated configuration with ``data`` on top of ``base`` or of the defaults.

    Args:
        data: Sections, flat keys, or both, and with ``preset`` the name of a preset to start from.
        source: The name of the data in errors.
        base: A configuration in the place of the defaults.

    Raises:
        ConfigError: The data has an unknown key or a bad value, or does not fit ``base``.
        MistakesError: There are several such mistakes.
    """
    return resolve(files=[layer_from_data(data, source)], base=base)


def to_dict(config: Config) -> dict[str, dict[str, Any]]:
    """Returns every key as JSON's plain data; ``from_dict`` gives an equal configuration back."""
    data: dict[str, dict[str, Any]] = to_jsonable_python(config)
    return data


OF_A_MACHINE = ("model.model_name", "env.base_url", "env.docker_host", "env.source")
"""Keys whose values may be places on a machine, beside those of the section ``run``."""


def card_facts(config: Config) -> dict[str, Any]:
    """Returns, for a model card, the keys that differ from the defaults, without places on this machine."""
    sections, defaults = to_dict(config), to_dict(Config())
    return {
        f"{section}.{name}": value
        for section, values in sections.items()
        for name, value in values.items()
        if section != "run" and f"{section}.{name}" not in OF_A_MACHINE and value != defaults[section][name]
    }


def load(path: str | Path) -> Config:
    """Returns the validated configuration with one file on top of the defaults."""
    return resolve(files=[path])


def save(config: Config, path: str | Path) -> Path:
    """Writes every key of ``config`` as JSON or YAML, by the name of the file; ``load`` reads it back."""
    path = Path(path)
    if _is_json(path):
        text = json.dumps(to_dict(config), indent=2, ensure_ascii=False) + "\n"
    else:
        text = write_yaml(to_dict(config))
    write_atomically(path, text)
    return path


def read_layer(path: str | Path) -> Layer:
    """Returns a ``.json``, ``.yaml`` or ``.yml`` file as a layer. An empty YAML file is an empty layer.

    It is UTF-8, with or without the mark that some editors put at its beginning.
    """
    path = Path(path)
    is_json = _is_json(path)
    try:
        text = read_file(path).decode("utf-8-sig")
        data = json.loads(text, object_pairs_hook=_no_repeats) if is_json else read_yaml(text)
    except OSError as error:
        raise ConfigError(f"config file {str(path)!r} cannot be read: {error.strerror}") from error
    except (ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{path}: not valid {'JSON' if is_json else 'YAML'}: {reason}") from error
    except RecursionError as error:
        raise ConfigError(f"{path}: its lists and mappings are nested too deeply") from error
    return layer_from_data({} if data is None and not is_json else data, str(path))


def saved_config(folder: str | Path) -> Config:
    """Returns the configuration of a run, given the run's folder or one of its checkpoints.

    Raises:
        ConfigError: The folder does not exist, or is neither a run nor a checkpoint.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ConfigError(f"no such run or checkpoint folder: {str(folder)!r}")
    here = folder.resolve()
    for candidate in (here, *list(here.parents)[:2]):
        saved = candidate / SAVED_NAME
        if saved.is_file():
            if not read_file(saved).strip():
                raise ConfigError(f"config file {str(saved)!r} is empty: it is no run's")
            return resolve(files=[saved])
    raise ConfigError(f"{str(folder)!r} is not a run: it holds no {SAVED_NAME}, nor do the two folders above")


def _is_json(path: Path) -> bool:
    suffix = path.suffix.lower()
    if path.is_dir():
        raise ConfigError(f"config file {str(path)!r} is a folder; allowed: a .json, .yaml or .yml file")
    if suffix not in (".json", ".yaml", ".yml"):
        raise ConfigError(f"config file {str(path)!r}: the name must end in .json, .yaml or .yml")
    return suffix == ".json"


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"key {next(name for name in names if names.count(name) > 1)!r} is given twice")
    return data
