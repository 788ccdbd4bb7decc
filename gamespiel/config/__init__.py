"""Configuration: typed sections, presets, files and overrides. ``resolve`` puts them together."""

from gamespiel.config.checks import evaluation_notices, notices
from gamespiel.config.files import (
    DEFAULT_PRESET,
    DEFAULT_PRESETS,
    SAVED_NAME,
    Resolved,
    card_facts,
    from_dict,
    load,
    resolve,
    resolve_layers,
    resolve_pretrained,
    save,
    saved_config,
    to_dict,
)
from gamespiel.config.imports import import_own_modules
from gamespiel.config.schema import preset_path, presets
from gamespiel.config.sections import Config, EnvConfig, RunConfig, Stage
from gamespiel.errors import ConfigError, InvalidValueError, MistakesError, UnknownKeyError

__all__ = [
    "DEFAULT_PRESET",
    "DEFAULT_PRESETS",
    "SAVED_NAME",
    "Config",
    "ConfigError",
    "EnvConfig",
    "InvalidValueError",
    "MistakesError",
    "Resolved",
    "RunConfig",
    "Stage",
    "UnknownKeyError",
    "card_facts",
    "evaluation_notices",
    "from_dict",
    "import_own_modules",
    "load",
    "notices",
    "preset_path",
    "presets",
    "resolve",
    "resolve_layers",
    "resolve_pretrained",
    "save",
    "saved_config",
    "to_dict",
]
