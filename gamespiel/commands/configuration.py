"""The configuration that a command line asks for: of options, files, presets and runs."""

import argparse
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from gamespiel import tracks
from gamespiel.agents.runs.catalog import read_place
from gamespiel.arguments import game_flags
from gamespiel.config import ConfigError, Resolved, resolve_layers, resolve_pretrained, saved_config
from gamespiel.config.imports import import_modules
from gamespiel.config.layers import find_option
from gamespiel.config.sections import EnvConfig, ModelConfig

LOADING = "loading PyTorch and transformers"
"""Printed first, because it takes seconds."""

Options = TypeVar("Options")

Overrides = list[tuple[str, str]]
"""Options that set keys, as (section.key, VALUE), in their order."""


def make_options(options: type[Options], args: argparse.Namespace, **others: Any) -> Options:
    """Returns options of a class: those of the command line by their names, and others.

    Those that are not given keep their defaults.
    """
    names = [field.name for field in dataclasses.fields(options) if field.name not in others]  # type: ignore[arg-type]
    values = {name: value for name in names if (value := getattr(args, name, None)) is not None}
    listed = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return options(**values | listed | others)


def list_flags(args: argparse.Namespace) -> Overrides:
    """Returns the keys that a command's options of their own set, with their values."""
    track = getattr(args, "track", None)
    given = [
        ("run.seed", args.seed),
        ("env.env_type", args.env),
        *game_flags(args),
        *([] if track is None else tracks.list_changes(track)),
        ("run.output_dir", getattr(args, "output_dir", None)),
    ]
    return [(key, value) for key, value in given if value is not None]


def resolve_with_imports(
    args: argparse.Namespace,
    overrides: Overrides,
    presets: Mapping[str, str],
    *,
    run: Path | None,
    option: str,
    trains: bool = False,
) -> Resolved:
    """Returns the configuration that was asked for, and imports its modules and those of ``--import``.

    It is on top of a run's own configuration, of a preset, or of the defaults.

    Args:
        args: The parsed options.
        overrides: The options that set keys.
        presets: By env_type, the preset in force if neither a preset nor a file is named.
        run: The run or checkpoint whose configuration is the base, if there is one.
        option: The option that names ``run``.
        trains: Whether another model than the default preset's takes the defaults and the preset's tasks.
    """
    if run is not None:
        if args.preset is not None:
            raise ConfigError(f"--preset cannot go with {option}: the run's own configuration holds")
        base = saved_config(run)
        if option == "--from":  # a new run has a folder of its own
            base = dataclasses.replace(base, run=dataclasses.replace(base.run, output_dir=None))
        resolved = resolve_layers(None, args.config, overrides, base=base, base_name=f"of {run}")
    elif args.preset is not None or args.config:
        resolved = resolve_layers(args.preset, args.config, overrides)
    else:
        preset = presets.get(dict(overrides).get("env.env_type", EnvConfig.env_type))
        if preset is not None and trains and names_other_model(overrides):
            resolved = resolve_pretrained(preset, overrides)
        else:
            resolved = resolve_layers(preset, (), overrides)
    own = resolved.config.run
    imports = tuple(dict.fromkeys((*own.imports, *args.imports)))
    import_modules(imports)
    if imports == own.imports:
        return resolved
    config = dataclasses.replace(resolved.config, run=dataclasses.replace(own, imports=imports))
    return resolved._replace(config=config, layers=f"{resolved.layers}, --import {' '.join(args.imports)}")


def read_checkpoint(args: argparse.Namespace) -> None:
    """Puts the folder that ``--checkpoint`` names in its place: RUN@STEP and RUN@best are a run's."""
    if args.checkpoint is not None:
        args.checkpoint = read_place(args.checkpoint)


def find_model_option(overrides: Overrides) -> str | None:
    """Returns the model that an option names, also in another library's words; None if none does."""
    named = [text for dotted, text in overrides if find_option(dotted) == ("model", "model_name")]
    return named[-1] if named else None


def names_other_model(overrides: Overrides) -> bool:
    """Returns whether an option names a model that is not the default one, which has presets of its own."""
    return find_model_option(overrides) not in (None, ModelConfig.model_name)


def print_layers(resolved: Resolved) -> None:
    """Prints at once where the configuration comes from: what follows can take seconds to import."""
    print("\n".join((f"configuration: {resolved.layers}", *resolved.notices)), flush=True)
