"""The commands that show games, replays and runs, and that serve games."""

import argparse
from pathlib import Path

from gamespiel.agents.installed import check_trainer
from gamespiel.arguments import game_flags
from gamespiel.commands.configuration import (
    Overrides,
    make_options,
    read_checkpoint,
    resolve_with_imports,
)
from gamespiel.config import ConfigError
from gamespiel.config.imports import import_modules
from gamespiel.serving.options import ServeOptions

DIFF = "diff"
"""The first argument of ``gamespiel runs`` that compares two; a folder of this name is ``./diff``."""


def run_games(args: argparse.Namespace, overrides: Overrides) -> None:
    """List the games."""
    import_modules(args.imports)

    from gamespiel.report.console import make_console
    from gamespiel.terminal.catalogue import show_games

    show_games(make_console(), as_json=args.json)


def run_play(args: argparse.Namespace, overrides: Overrides) -> None:
    """Play a game in the terminal."""
    read_checkpoint(args)
    overrides = [*game_flags(args), *overrides]
    if args.checkpoint is None and not dict(overrides).keys() & {"env.game", "env.task_id", "env.task_ids"}:
        raise ConfigError("what is played? give --game NAME, --task_id N or --checkpoint RUN")
    resolved = resolve_with_imports(args, overrides, {}, run=args.checkpoint, option="--checkpoint")
    if args.checkpoint is not None:
        check_trainer("play --checkpoint")

    from gamespiel.terminal.play import play

    play(resolved.config.env, seed=args.seed, checkpoint=args.checkpoint)


def run_watch(args: argparse.Namespace, overrides: Overrides) -> None:
    """Watch a trained policy play, move by move."""
    read_checkpoint(args)
    overrides = [*game_flags(args), *overrides]
    config = resolve_with_imports(args, overrides, {}, run=args.checkpoint, option="--checkpoint").config
    check_trainer("watch")

    from gamespiel.terminal.watch import watch

    watch(
        config.env, args.checkpoint, episodes=args.episodes, seed=args.seed, greedy=args.greedy,
        delay=args.delay, run=config.run,
    )  # fmt: skip


def run_replay(args: argparse.Namespace, overrides: Overrides) -> None:
    """Write a page that replays recorded episodes."""
    from gamespiel.replay.page import write_page

    write_page(args.place, args.html, allow_files=args.allow_files)


def run_runs(args: argparse.Namespace, overrides: Overrides) -> None:
    """List runs with their figures; runs diff A B: what differs."""
    from gamespiel.report.console import make_console

    places = [Path(place) for place in args.places]
    if args.places[:1] != [DIFF]:
        from gamespiel.overview.reading import show_runs

        show_runs(make_console(), places, as_json=args.json)
        return
    if len(places) != 3 or args.json:
        raise ConfigError(f"{DIFF} takes two runs, and prints tables: gamespiel runs {DIFF} RUN RUN")
    from gamespiel.overview.comparing import compare_runs

    compare_runs(make_console(), places[1], places[2])


def run_plot(args: argparse.Namespace, overrides: Overrides) -> None:
    """Draw the curves of runs."""
    from gamespiel.overview.plots import plot_runs
    from gamespiel.report.console import make_console

    plot_runs(make_console(), args.places, args.output)


def run_serve(args: argparse.Namespace, overrides: Overrides) -> None:
    """Serve games or traces over HTTP, for affinetes' clients."""
    options = make_options(ServeOptions, args, opponents=import_modules(args.imports))

    from gamespiel.serving.run import serve

    serve(options)
