"""Reading and writing configurations: files, presets, and the whole resolution from what a caller names."""

import dataclasses
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import yaml

from gamespiel.config.checks import validate
from gamespiel.config.errors import ConfigError, unknown
from gamespiel.config.layers import Layer, layer_from_data, layer_from_overrides, merge
from gamespiel.config.sections import Config
from gamespiel.config.yaml_text import read_yaml, write_yaml

DEFAULT_PRESET = "tiny"
DEFAULT_PRESETS = {"openspiel": DEFAULT_PRESET, "trace": "tiny-trace"}
"""What is trained where nothing else is named, by env.env_type."""

SAVED_NAME = "config.yaml"
"""A run's folder holds its resolved configuration under this name."""


def resolve(
    preset: str | None = None,
    files: Sequence[str | Path] = (),
    overrides: Iterable[tuple[str, str]] = (),
    *,
    base: Config | None = None,
) -> Config:
    """The validated configuration: defaults (or `base`) < preset < files, later ones winning < overrides."""
    layers: list[Layer] = [layer_from_data(to_dict(base))] if base is not None else []
    layers += [read_layer(preset_path(preset))] if preset is not None else []
    layers += [read_layer(path) for path in files]
    layers.append(layer_from_overrides(overrides))
    return validate(merge(layers))


def from_dict(data: Any, source: str = "config", *, base: Config | None = None) -> Config:
    """The validated configuration that `data` (sections, flat, or both) makes of `base` or the defaults."""
    below = [layer_from_data(to_dict(base))] if base is not None else []
    return validate(merge([*below, layer_from_data(data, source)]))


def to_dict(config: Config) -> dict[str, dict[str, Any]]:
    """Plain data, as JSON has it, with every key; `from_dict` gives an equal configuration back."""
    data = {section: _plain(values) for section, values in dataclasses.asdict(config).items()}
    return data


def load(path: str | Path) -> Config:
    """The validated configuration that one file makes of the defaults."""
    return validate(merge([read_layer(path)]))


def save(config: Config, path: str | Path) -> Path:
    """Writes every key of `config` to `path`, as JSON or YAML by its name; `load` gives an equal one back."""
    path = Path(path)
    if _is_json(path):
        text = json.dumps(to_dict(config), indent=2, ensure_ascii=False) + "\n"
    else:
        text = write_yaml(to_dict(config))
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, path)  # a kill leaves the old file or the new one
    return path


def read_layer(path: str | Path) -> Layer:
    """What a `.json`, `.yaml` or `.yml` file says, as a layer. An empty YAML file says nothing."""
    path = Path(path)
    is_json = _is_json(path)
    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text, object_pairs_hook=_no_repeats) if is_json else read_yaml(text)
    except OSError as error:
        raise ConfigError(f"config file {str(path)!r} cannot be read: {error.strerror}") from error
    except (ValueError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{path}: not valid {'JSON' if is_json else 'YAML'}: {reason}") from error
    return layer_from_data({} if data is None and not is_json else data, str(path))


def presets() -> tuple[str, ...]:
    """The names of the presets."""
    return tuple(sorted(path.stem for path in _preset_dir().glob("*.yaml")))


def preset_path(name: str) -> Path:
    """The file of a preset; an unknown name is an error with the nearest match."""
    if name not in presets():
        raise unknown("preset", name, presets())
    return _preset_dir() / f"{name}.yaml"


def saved_config(folder: str | Path) -> Config:
    """The configuration of the run that `folder` is, or is a checkpoint of."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ConfigError(f"no such run or checkpoint folder: {str(folder)!r}")
    here = folder.resolve()
    for candidate in (here, *list(here.parents)[:2]):
        saved = candidate / SAVED_NAME
        if saved.is_file():
            if not saved.read_text(encoding="utf-8").strip():
                raise ConfigError(f"config file {str(saved)!r} is empty: it is no run's")
            return load(saved)
    raise ConfigError(f"{str(folder)!r} is not a run: it holds no {SAVED_NAME}, nor do the two folders above")


def _preset_dir() -> Path:
    """`configs/`: inside the package when installed, beside it in a checkout."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "configs"
    return installed if installed.is_dir() else package.parent / "configs"


def _is_json(path: Path) -> bool:
    suffix = path.suffix.lower()
    if suffix not in (".json", ".yaml", ".yml"):
        raise ConfigError(f"config file {str(path)!r}: the name must end in .json, .yaml or .yml")
    return suffix == ".json"


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"key {next(name for name in names if names.count(name) > 1)!r} is given twice")
    return data


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
