"""The commands that make, train and hand on models."""

import argparse
from contextlib import nullcontext, redirect_stdout
from pathlib import Path

from gamespiel.agents.installed import check_trainer
from gamespiel.agents.launch import Launch, read_launch
from gamespiel.agents.runs.catalog import find, find_whole, names_step, read_place, step_of
from gamespiel.commands.configuration import (
    LOADING,
    Overrides,
    list_flags,
    print_layers,
    resolve_with_imports,
)
from gamespiel.config import DEFAULT_PRESETS, SAVED_NAME, ConfigError, saved_config
from gamespiel.config.schema import file_schema
from gamespiel.report.text import lasting_output, print_json

AUTO = "auto"
"""The value of ``--resume`` that goes on with a run if there is one, and else begins it."""


def run_train(args: argparse.Namespace, overrides: Overrides) -> None:
    """Train a policy."""
    launch = read_launch()
    with nullcontext() if launch.leads else redirect_stdout(None):  # one of several ranks speaks for all
        _run_train(args, overrides, launch)


def _run_train(args: argparse.Namespace, overrides: Overrides, launch: Launch) -> None:
    flags = list_flags(args)
    output_dir = dict([*flags, *overrides]).get("run.output_dir")
    restarted = _find_restart(args, output_dir, launch)
    if args.init_from is not None:
        args.init_from = read_place(args.init_from)
        origin = args.init_from if restarted is None else saved_config(restarted).run.init_from
        flags.append(("run.init_from", str(origin)))
    run, option = (args.init_from, "--from") if args.init_from is not None else (args.resume, "--resume")
    if option == "--resume" and str(run) == AUTO:
        # The same command begins a run and goes on with it: the run's own configuration is compared with its.
        args.resume, run = _find_run(output_dir), None
    elif restarted is not None:
        args.resume = _newest_whole(restarted)
        run = restarted if option == "--resume" and run is not None else run
    run = None if run is None else read_place(run)
    overrides = [*flags, *overrides]
    resolved = resolve_with_imports(args, overrides, DEFAULT_PRESETS, run=run, option=option, trains=True)
    check_trainer("train")
    if args.plan is not None:
        from gamespiel.training import planning, readiness

        print_layers(resolved)
        readiness.check_run(resolved.config, args.resume)
        planning.show(resolved.config, args.plan)
        return
    with lasting_output():
        print(LOADING)
        print_layers(resolved)

        from gamespiel.training.run import train

        train(resolved.config, resume=args.resume)


def _find_restart(args: argparse.Namespace, output_dir: str | None, launch: Launch) -> Path | None:
    """Returns the folder of a run whose ranks were all started again by ``torchrun``; None if there is none.

    They were started with the same command, which began the run or went on with it.
    """
    if not launch.restarts or str(args.resume) == AUTO:
        return None
    from gamespiel.runs import read_noted_folder

    folder: Path | None
    if args.resume is not None:
        place = str(args.resume)
        named = names_step(place) and not args.resume.exists()  # that checkpoint may be gone by now
        folder = Path(place.rpartition("@")[0]) if named else find(args.resume).parent.parent
    elif output_dir:
        folder = Path(output_dir)
    else:
        folder = read_noted_folder(launch)
    return folder if folder is not None and (folder / SAVED_NAME).exists() else None


def _find_run(output_dir: str | None) -> Path | None:
    """Returns the newest whole checkpoint of the run in a folder; None if there is no run.

    Raises:
        ConfigError: no folder is named.
    """
    if output_dir is None:
        raise ConfigError(f"--resume {AUTO} needs --output_dir, the folder in which the run is or will be")
    folder = Path(output_dir)
    if not (folder / SAVED_NAME).exists():
        print(f"--resume {AUTO}: there is no run in {folder}; a new one begins")
        return None
    return _newest_whole(folder)


def _newest_whole(folder: Path) -> Path:
    """Returns the place at which a run goes on: the run, or its newest checkpoint that is whole."""
    whole, newest = find_whole(folder), find(folder)
    if whole == newest:
        return folder
    print(f"--resume {AUTO}: {newest.name} is not whole; going back to {whole.name}")
    return Path(f"{folder}@{step_of(whole)}")


def run_sft(args: argparse.Namespace, overrides: Overrides) -> None:
    """Train on recorded answers before PPO: a warm start."""
    overrides = [*list_flags(args), *overrides]
    resolved = resolve_with_imports(args, overrides, DEFAULT_PRESETS, run=None, option="--from", trains=True)
    check_trainer("sft")
    with lasting_output():
        print(LOADING)
        print_layers(resolved)

        from gamespiel.training.warm_start import WarmStart, warm_start

        start = WarmStart(args.data, args.epochs, args.learning_rate, args.batch_size)
        warm_start(resolved.config, start)


def run_merge(args: argparse.Namespace, overrides: Overrides) -> None:
    """Merge a run's adapters into its base model, and check it."""
    check_trainer("merge")

    from gamespiel.deployment.publishing import publish

    names = ("dtype", "tolerance", "licence")
    publish(args.place, args.output, **{name: getattr(args, name) for name in names})


def run_export(args: argparse.Namespace, overrides: Overrides) -> None:
    """Write recorded episodes as rows in chat format, to train on."""
    from gamespiel.replay.page import export_turns

    export_turns(args.place, args.output, results=args.result)


def run_vllm_command(args: argparse.Namespace, overrides: Overrides) -> None:
    """Print the command lines of a configuration's vLLM servers."""
    overrides = [*list_flags(args), *overrides]
    run = None if args.checkpoint is None else read_place(args.checkpoint)
    resolved = resolve_with_imports(
        args, overrides, DEFAULT_PRESETS, run=run, option="--checkpoint", trains=True
    )
    check_trainer("vllm-command")

    from gamespiel.deployment.vllm_command import vllm_commands

    print("\n".join(vllm_commands(resolved.config, batch_invariant=args.batch_invariant)))


def run_schema(args: argparse.Namespace, overrides: Overrides) -> None:
    """Print the JSON schema of configuration files."""
    print_json(file_schema())
