"""The configuration that a command line asks for: of options, files, presets and runs."""

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from gamespiel import tracks
from gamespiel.agents.runs.catalog import read_place
from gamespiel.arguments import game_flags
from gamespiel.config import Config, ConfigError, Resolved, resolve_layers, resolve_pretrained, saved_config
from gamespiel.config.imports import import_modules
from gamespiel.config.layers import find_option
from gamespiel.config.sections import EnvConfig, ModelConfig

LOADING = "loading PyTorch and transformers"
"""Printed first, because it takes seconds."""

Options = TypeVar("Options")

Overrides = list[tuple[str, str]]
"""``--section.key VALUE`` options as (section.key, VALUE), in the order given."""


def make_options(options: type[Options], args: argparse.Namespace, **others: Any) -> Options:
    """Returns options of a class: those of the command line by their names, and others.

    Those that are not given keep their defaults.
    """
    names = [field.name for field in dataclasses.fields(options) if field.name not in others]  # type: ignore[arg-type]
    values = {name: value for name in names if (value := getattr(args, name, None)) is not None}
    listed = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return options(**values | listed | others)


def list_flags(args: argparse.Namespace) -> list[tuple[str, str | None]]:
    """Returns the keys that options of ``train`` and ``eval`` set, with their values or None."""
    track = getattr(args, "track", None)
    changes = [] if track is None else tracks.list_changes(track)
    return [("run.seed", args.seed), ("env.env_type", args.env), *game_flags(args), *changes]


def resolve_with_imports(
    args: argparse.Namespace,
    flags: Sequence[tuple[str, str | None]],
    overrides: Overrides,
    presets: Mapping[str, str],
    **how: Any,
) -> Resolved:
    """Returns what ``_resolve_layers`` does, with the modules of ``--import``, and imports all modules."""
    resolved = _resolve_layers(args, flags, overrides, presets, **how)
    run = resolved.config.run
    imports = tuple(dict.fromkeys((*run.imports, *args.imports)))
    import_modules(imports)
    if imports == run.imports:
        return resolved
    config = dataclasses.replace(resolved.config, run=dataclasses.replace(run, imports=imports))
    return resolved._replace(config=config, layers=f"{resolved.layers}, --import {' '.join(args.imports)}")


def _resolve_layers(
    args: argparse.Namespace,
    flags: Sequence[tuple[str, str | None]],
    overrides: Overrides,
    presets: Mapping[str, str],
    *,
    run: Path | None,
    option: str,
    trains: bool = False,
) -> Resolved:
    """Returns the configuration that was asked for: on top of a run's own, of a preset, or of the defaults.

    Args:
        args: The parsed options.
        flags: Options that set a key, with their values or None.
        overrides: The ``--section.key`` options.
        presets: By env_type, the preset in force if neither a preset nor a file is named.
        run: The run or checkpoint whose configuration is the base, if there is one.
        option: The option that names ``run``.
        trains: Whether another model than the default preset's takes the defaults and the preset's tasks.
    """
    pairs = [*((key, value) for key, value in flags if value is not None), *overrides]
    if run is not None:
        if args.preset is not None:
            raise ConfigError(f"--preset cannot go with {option}: the run's own configuration holds")
        base = saved_config(run)
        if option == "--from":  # a new run has a folder of its own
            base = dataclasses.replace(base, run=dataclasses.replace(base.run, output_dir=None))
        return resolve_layers(None, args.config, pairs, base=base, base_name=f"of {run}")
    if args.preset is not None or args.config:
        return resolve_layers(args.preset, args.config, pairs)
    preset = presets.get(dict(pairs).get("env.env_type", EnvConfig.env_type))
    if preset is not None and trains and names_other_model(overrides):
        return resolve_pretrained(preset, pairs)
    return resolve_layers(preset, (), pairs)


def resolve_game(
    args: argparse.Namespace, flags: Sequence[tuple[str, str | None]], overrides: Overrides
) -> Config:
    """Returns the configuration of a command that shows games: notices are printed, the layers are not."""
    resolved = resolve_with_imports(args, flags, overrides, {}, run=args.checkpoint, option="--checkpoint")
    for notice in resolved.notices:
        print(notice)
    return resolved.config


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
