"""The commands: what each does with the options that were given."""

import argparse
import dataclasses
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gamespiel.agents.installed import check_trainer
from gamespiel.agents.runs.kept import find, find_whole, read_place, step_of
from gamespiel.arguments import ANSWERS, game_flags
from gamespiel.config import (
    DEFAULT_PRESET,
    DEFAULT_PRESETS,
    SAVED_NAME,
    Config,
    ConfigError,
    Resolved,
    resolve_layers,
    resolve_pretrained,
    saved_config,
)
from gamespiel.config.imports import import_modules
from gamespiel.config.layers import find_option
from gamespiel.config.schema import file_schema
from gamespiel.config.sections import EnvConfig, ModelConfig
from gamespiel.errors import unknown_name_error
from gamespiel.options import EvalOptions
from gamespiel.report.streams import lasting_output
from gamespiel.report.text import print_json
from gamespiel.serving.options import ServeOptions

LOADING = "loading PyTorch and transformers"
"""Printed first, because it takes seconds."""

Overrides = list[tuple[str, str]]
"""``--section.key VALUE`` options as (section.key, VALUE), in the order given."""


def run_train(args: argparse.Namespace, overrides: Overrides) -> None:
    """Train a policy."""
    flags = [*_train_and_eval_flags(args), ("run.output_dir", args.output_dir)]
    if args.init_from is not None:
        args.init_from = read_place(args.init_from)
        flags.append(("run.init_from", str(args.init_from)))
    run, option = (args.init_from, "--from") if args.init_from is not None else (args.resume, "--resume")
    if option == "--resume" and str(run) == AUTO:
        # The same command begins a run and goes on with it: the run's own configuration is compared with its.
        args.resume, run = _find_run(flags, overrides), None
    run = None if run is None else read_place(run)
    resolved = _resolve_with_imports(
        args, flags, overrides, DEFAULT_PRESETS, run=run, option=option, trains=True
    )
    check_trainer("train")
    if args.plan is not None:
        from gamespiel import planning, readiness

        _print_layers(resolved)
        readiness.check_run(resolved.config, args.resume)
        planning.show(resolved.config, args.plan)
        return
    with lasting_output():
        print(LOADING)
        _print_layers(resolved)

        from gamespiel.training import train

        train(resolved.config, resume=args.resume)


AUTO = "auto"
"""The value of ``--resume`` that goes on with a run if there is one, and else begins it."""


def _find_run(flags: Sequence[tuple[str, str | None]], overrides: Overrides) -> Path | None:
    """Returns the newest whole checkpoint of the run in ``run.output_dir``; None if there is no run.

    Raises:
        ConfigError: no folder is named.
    """
    named = [value for key, value in [*flags, *overrides] if key == "run.output_dir" and value is not None]
    if not named:
        raise ConfigError(f"--resume {AUTO} needs --output_dir, the folder in which the run is or will be")
    folder = Path(named[-1])
    if not (folder / SAVED_NAME).exists():
        print(f"--resume {AUTO}: there is no run in {folder}; a new one begins")
        return None
    whole, newest = find_whole(folder), find(folder)
    if whole == newest:
        return folder
    print(f"--resume {AUTO}: {newest.name} is not whole; going back to {whole.name}")
    return Path(f"{folder}@{step_of(whole)}")


def _train_and_eval_flags(args: argparse.Namespace) -> list[tuple[str, str | None]]:
    """Returns the keys that options of ``train`` and ``eval`` set, with their values or None."""
    return [("run.seed", args.seed), ("env.env_type", args.env), *game_flags(args)]


def run_eval(args: argparse.Namespace, overrides: Overrides) -> None:
    """Evaluate a trained policy or a named agent."""
    _read_checkpoint(args)
    flags = _train_and_eval_flags(args)
    named = args.preset is not None or args.config or _find_model_option(overrides) is not None
    if args.checkpoint is None and args.agent is None and not named:
        raise ConfigError(
            "who is evaluated? give --checkpoint RUN, --agent NAME, or a model with --model.model_name NAME"
        )
    # Traces without a preset are all of them; tiny-trace trains on a part. The default preset goes with its
    # own model: another model, without a run, is evaluated with the defaults.
    plays = args.checkpoint is None and args.agent is None
    defaults = {} if plays and _other_model(overrides) else {EnvConfig.env_type: DEFAULT_PRESET}
    resolved = _resolve_with_imports(
        args, flags, overrides, defaults, run=args.checkpoint, option="--checkpoint"
    )
    env = resolved.config.env
    if args.backend is not None and (args.backend == "local") != (env.env_mode == "local"):
        served = "url" if env.base_url is not None else "docker"
        flags.append(("env.env_mode", "local" if args.backend == "local" else served))
        resolved = _resolve_with_imports(
            args, flags, overrides, defaults, run=args.checkpoint, option="--checkpoint"
        )
    given = {name: getattr(args, name) for name in ("concurrency", "temperature", "request_s", "episode_s")}
    options = EvalOptions(
        config=resolved.config,
        checkpoint=args.checkpoint,
        agent=args.agent,
        num_episodes=args.num_episodes,
        exact=args.exact,
        greedy=args.greedy,
        unmasked=args.unmasked,
        decode=args.decode,
        max_new_tokens=args.max_new_tokens,
        output=args.output,
        save_games=args.save_games,
        whole_game=args.whole_game,
        resume=args.resume,
        prices=None if args.prices is None else (args.prices[0], args.prices[1]),
        **{name: value for name, value in given.items() if value is not None},
    )
    if options.endpoint:
        from gamespiel.external import evaluate_endpoint

        _print_layers(resolved)
        evaluate_endpoint(options)
        return
    if options.agent is None:
        check_trainer("eval")
        print(LOADING)
    _print_layers(resolved)

    from gamespiel.evaluation import evaluate

    evaluate(options)


def run_configure(args: argparse.Namespace, overrides: Overrides) -> None:
    """Ask a few questions and write a configuration file."""
    _refuse_overrides(overrides, args)

    from gamespiel.configure.wizard import configure

    given = {name: getattr(args, name) for name, _, _ in ANSWERS}
    configure(given, ask=sys.stdin.isatty(), defaults=args.yes, force=args.force)


def run_schema(args: argparse.Namespace, overrides: Overrides) -> None:
    """Print the JSON schema of configuration files."""
    _refuse_overrides(overrides, args)
    print_json(file_schema())


def run_serve(args: argparse.Namespace, overrides: Overrides) -> None:
    """Serve games or traces over HTTP, for affinetes' clients."""
    _refuse_overrides(overrides, args)
    options = ServeOptions(
        args.env, args.host, args.port, args.source, args.injector, args.max_sessions, args.idle_s,
        args.max_body, args.hosts or (), args.evaluate_hosts, import_modules(args.imports),
    )  # fmt: skip

    from gamespiel.serving.run import serve

    serve(options)


def run_games(args: argparse.Namespace, overrides: Overrides) -> None:
    """List the games."""
    _refuse_overrides(overrides, args)
    import_modules(args.imports)

    from rich.console import Console

    from gamespiel.terminal.catalogue import show_games

    show_games(Console(), as_json=args.json)


def run_play(args: argparse.Namespace, overrides: Overrides) -> None:
    """Play a game in the terminal."""
    _read_checkpoint(args)
    flags = game_flags(args)
    given = {key for key, value in [*flags, *overrides] if value is not None}
    if args.checkpoint is None and not given & {"env.game", "env.task_id", "env.task_ids"}:
        raise ConfigError("what is played? give --game NAME, --task_id N or --checkpoint RUN")
    config = _resolve_game(args, flags, overrides)

    if args.checkpoint is not None:
        check_trainer("play --checkpoint")

    from gamespiel.terminal.play import play

    play(config.env, seed=args.seed, checkpoint=args.checkpoint)


def run_watch(args: argparse.Namespace, overrides: Overrides) -> None:
    """Watch a trained policy play, move by move."""
    _read_checkpoint(args)
    config = _resolve_game(args, game_flags(args), overrides)

    check_trainer("watch")

    from gamespiel.terminal.watch import watch

    watch(
        config.env,
        args.checkpoint,
        episodes=args.episodes,
        seed=args.seed,
        greedy=args.greedy,
        delay=args.delay,
        run=config.run,
    )


def run_trace(args: argparse.Namespace, overrides: Overrides) -> None:
    """Say what a program prints, and see the scores."""
    _refuse_overrides(overrides, args)

    from gamespiel.terminal.trace import trace

    trace(task_id=args.task_id, level=args.level, family=args.family, seed=args.seed)


def run_replay(args: argparse.Namespace, overrides: Overrides) -> None:
    """Write a page that replays recorded episodes."""
    _refuse_overrides(overrides, args)

    from gamespiel.replay.page import write_page

    write_page(args.place, args.html)


def run_export(args: argparse.Namespace, overrides: Overrides) -> None:
    """Write recorded episodes as rows in chat format, for supervised training."""
    _refuse_overrides(overrides, args)

    from gamespiel.replay.export import export_turns

    export_turns(args.place, args.output, results=args.result)


def run_sft(args: argparse.Namespace, overrides: Overrides) -> None:
    """Train on recorded answers before PPO: a warm start."""
    flags = [*_train_and_eval_flags(args), ("run.output_dir", args.output_dir)]
    resolved = _resolve_with_imports(
        args, flags, overrides, DEFAULT_PRESETS, run=None, option="--from", trains=True
    )
    check_trainer("sft")
    with lasting_output():
        print(LOADING)
        _print_layers(resolved)

        from gamespiel.warm_start import WarmStart, warm_start

        start = WarmStart(args.data, args.epochs, args.learning_rate, args.batch_size)
        warm_start(resolved.config, start)


def run_merge(args: argparse.Namespace, overrides: Overrides) -> None:
    """Merge a run's adapters into its base model, check the result, and upload it if asked."""
    _refuse_overrides(overrides, args)
    check_trainer("merge")

    from gamespiel.publishing import Form, Push, publish

    publish(
        args.place,
        args.output,
        Form(args.adapters, args.dtype, args.tolerance, args.gguf),
        None if args.push is None else Push(args.push, args.private, args.dry_run),
        licence=args.licence,
    )


def run_vllm_command(args: argparse.Namespace, overrides: Overrides) -> None:
    """Print the command lines of the vLLM servers that a configuration needs."""
    flags = _train_and_eval_flags(args)
    run = None if args.checkpoint is None else read_place(args.checkpoint)
    resolved = _resolve_with_imports(
        args, flags, overrides, DEFAULT_PRESETS, run=run, option="--checkpoint", trains=True
    )
    check_trainer("vllm-command")

    from gamespiel.vllm_command import vllm_commands

    print("\n".join(vllm_commands(resolved.config, batch_invariant=args.batch_invariant)))


def run_runs(args: argparse.Namespace, overrides: Overrides) -> None:
    """List runs with their state and main figures."""
    _refuse_overrides(overrides, args)

    from rich.console import Console

    from gamespiel.overview.listing import show_runs

    show_runs(Console(), args.places, as_json=args.json)


def run_plot(args: argparse.Namespace, overrides: Overrides) -> None:
    """Draw the curves of runs."""
    _refuse_overrides(overrides, args)

    from rich.console import Console

    from gamespiel.overview.curves import plot_runs

    plot_runs(Console(), args.places, args.output)


def run_compare(args: argparse.Namespace, overrides: Overrides) -> None:
    """Show in which keys and results two runs differ, and where they part."""
    _refuse_overrides(overrides, args)

    from rich.console import Console

    if args.bisect:
        check_trainer("compare --bisect")

    from gamespiel.overview.comparing import compare_runs

    compare_runs(Console(), args.first, args.second, bisect=args.bisect)


def _refuse_overrides(overrides: Overrides, args: argparse.Namespace) -> None:
    """Raises if configuration keys are given to a command that has none."""
    if overrides:
        raise unknown_name_error("option", f"--{overrides[0][0]}", args.flags)


def _resolve_with_imports(
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
    given = [*((key, value) for key, value in flags if value is not None), *overrides]
    if run is not None:
        if args.preset is not None:
            raise ConfigError(f"--preset cannot go with {option}: the run's own configuration holds")
        base = saved_config(run)
        if option == "--from":  # a new run has a folder of its own
            base = dataclasses.replace(base, run=dataclasses.replace(base.run, output_dir=None))
        return resolve_layers(None, args.config, given, base=base, base_name=f"of {run}")
    if args.preset is not None or args.config:
        return resolve_layers(args.preset, args.config, given)
    preset = presets.get(dict(given).get("env.env_type", EnvConfig.env_type))
    if preset is not None and trains and _other_model(overrides):
        return resolve_pretrained(preset, given)
    return resolve_layers(preset, (), given)


def _read_checkpoint(args: argparse.Namespace) -> None:
    """Puts the folder that ``--checkpoint`` names in its place: RUN@STEP and RUN@best are a run's."""
    if args.checkpoint is not None:
        args.checkpoint = read_place(args.checkpoint)


def _find_model_option(overrides: Overrides) -> str | None:
    """Returns the model that an option names, also in another library's words; None if none does."""
    named = [text for dotted, text in overrides if find_option(dotted) == ("model", "model_name")]
    return named[-1] if named else None


def _other_model(overrides: Overrides) -> bool:
    """Returns whether an option names a model that is not the default one, which has presets of its own."""
    return _find_model_option(overrides) not in (None, ModelConfig.model_name)


def _resolve_game(
    args: argparse.Namespace, flags: Sequence[tuple[str, str | None]], overrides: Overrides
) -> Config:
    """Returns the configuration of a command that shows games: notices are printed, the layers are not."""
    resolved = _resolve_with_imports(args, flags, overrides, {}, run=args.checkpoint, option="--checkpoint")
    for notice in resolved.notices:
        print(notice)
    return resolved.config


def _print_layers(resolved: Resolved) -> None:
    """Prints at once where the configuration comes from: what follows can take seconds to import."""
    print("\n".join((f"configuration: {resolved.layers}", *resolved.notices)), flush=True)
