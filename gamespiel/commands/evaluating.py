"""The commands that measure agents."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gamespiel import tracks
from gamespiel.agents.installed import check_trainer
from gamespiel.commands.configuration import (
    LOADING,
    Overrides,
    find_model_option,
    list_flags,
    make_options,
    names_other_model,
    print_layers,
    read_checkpoint,
    resolve_with_imports,
)
from gamespiel.config import DEFAULT_PRESET, Config, ConfigError, saved_config
from gamespiel.config.imports import import_modules
from gamespiel.config.sections import EnvConfig
from gamespiel.endpoints import PREFIX
from gamespiel.errors import InvalidValueError, unknown_name_error
from gamespiel.kinds import KINDS, kind_of
from gamespiel.measure.options import EvalOptions
from gamespiel.report.text import lasting_output, print_plain

if TYPE_CHECKING:
    from rich.console import Console


def run_eval(args: argparse.Namespace, overrides: Overrides) -> None:
    """Evaluate a policy or an agent, or compare several."""
    _read_track(args)
    if args.compare is not None:
        _run_comparison(args, overrides)
        return
    for name in ("until_clear", "detect"):
        if getattr(args, name):
            raise ConfigError(f"--{name} is for --compare AGENT AGENT …")
    read_checkpoint(args)
    flags = list_flags(args)
    named = args.preset is not None or args.config or find_model_option(overrides) is not None
    if args.checkpoint is None and args.agent is None and not named:
        raise ConfigError(
            "who is evaluated? give --checkpoint RUN, --agent NAME, or a model with --model.model_name NAME"
        )
    # Traces without a preset are all of them; tiny-trace trains on a part. The default preset goes with its
    # own model: another model, without a run, is evaluated with the defaults.
    plays = args.checkpoint is None and args.agent is None
    defaults = {} if plays and names_other_model(overrides) else {EnvConfig.env_type: DEFAULT_PRESET}
    run: Any = {"run": args.checkpoint, "option": "--checkpoint"}
    resolved = resolve_with_imports(args, [*flags, *overrides], defaults, **run)
    env = resolved.config.env
    if args.backend is not None and (args.backend == "local") != (env.env_mode == "local"):
        served = "url" if env.base_url is not None else "docker"
        flags.append(("env.env_mode", "local" if args.backend == "local" else served))
        resolved = resolve_with_imports(args, [*flags, *overrides], defaults, **run)
    kind = kind_of(resolved.config.env)
    if args.track is not None and kind.track(resolved.config.env, writes=False) is None:
        raise ConfigError(f"--track is for games, not for {kind.unit}")
    options = make_options(EvalOptions, args, config=resolved.config)
    if options.endpoint:
        from gamespiel.measure.external import evaluate_endpoint

        print_layers(resolved)
        evaluate_endpoint(options)
        return
    if options.agent is None:
        check_trainer("eval")
        print(LOADING)
    print_layers(resolved)

    from gamespiel.measure.evaluation import evaluate

    evaluate(options)


def _read_track(args: argparse.Namespace) -> None:
    """Has checkpoints and models answer as the track of ``--track`` asks.

    Raises:
        ConfigError: other options say otherwise, or the agent is a baseline.
    """
    if args.track is None:
        return
    tracks.list_changes(args.track)  # raises if there is no such track
    endpoint = args.agent is not None and args.agent.startswith(PREFIX)
    if args.agent is not None and not endpoint:
        raise ConfigError(f"--track is for models: {args.agent!r} always chooses a legal action")
    if args.unmasked or args.decode != EvalOptions.decode:
        raise ConfigError("--track says how a model answers: leave --decode and --unmasked out")
    if args.track == tracks.MASKED:
        if endpoint:
            raise ConfigError(
                "--track masked: nothing masks the replies of an endpoint; allowed: unmasked, unlisted"
            )
    elif not endpoint:
        args.decode = "text"


def _run_comparison(args: argparse.Namespace, overrides: Overrides) -> None:
    """Compares agents: the part of ``eval`` with ``--compare``."""
    from gamespiel.measure.compare.options import CompareOptions, enter, find_checkpoint

    for name in ("exact", "unmasked", "save_games", "whole_game", "prices", "backend"):
        if getattr(args, name):
            raise ConfigError(f"--{name} does not go with --compare: leave one of them out")
    overrides = [*list_flags(args), *overrides]
    env_type = args.env or EnvConfig.env_type
    if env_type not in KINDS:
        raise unknown_name_error("env.env_type", env_type, KINDS, listed=True)
    places = {name: find_checkpoint("--compare", name, env_type) for name in args.compare}
    alone = argparse.Namespace(**{**vars(args), "preset": None, "config": []})
    configs = {
        name: None
        if place is None
        else resolve_with_imports(alone, overrides, {}, run=place, option="--compare").config
        for name, place in places.items()
    }
    # The tasks are those that options name, else those of the first run, else the default preset's.
    first = None if args.preset is not None or args.config else next(filter(None, places.values()), None)
    defaults = {EnvConfig.env_type: DEFAULT_PRESET}
    common = resolve_with_imports(args, overrides, defaults, run=first, option="--compare")
    agents = tuple(enter(name, common.config, configs[name], places[name]) for name in args.compare)
    options = make_options(CompareOptions, args, config=common.config, agents=agents)
    if any(places.values()):
        check_trainer("eval --compare with runs")
        print(LOADING)
    print_layers(common)

    from gamespiel.measure.compare.run import compare

    compare(options)


def run_exploit(args: argparse.Namespace, overrides: Overrides) -> None:
    """Find how an agent loses: its exploitability, or a lower bound."""
    from gamespiel.environments.making import take_tasks
    from gamespiel.measure.compare.options import find_checkpoint
    from gamespiel.measure.exploit.options import ExploitOptions

    checkpoint = find_checkpoint("AGENT", args.agent, EnvConfig.env_type)
    overrides = [*list_flags(args), *overrides]
    # Its exploiter meets agents whose policies no tree knows.
    learner = {EnvConfig.env_type: "tiny-gae"}
    resolved = resolve_with_imports(args, overrides, learner, run=None, option="AGENT")
    config = resolved.config
    named = dict(overrides).keys() & {"env.game", "env.task_id"}
    if checkpoint is not None and not named:  # presets and files say how the exploiter is trained
        config = take_tasks(config, saved_config(checkpoint))
    place = None if checkpoint is None else args.agent
    options = make_options(ExploitOptions, args, config=config, place=place)
    if checkpoint is not None or "train" in options.methods:
        check_trainer("exploit")
        print(LOADING)
    print_layers(resolved)

    from gamespiel.measure.exploit.run import exploit

    exploit(options, _train, approve=None if args.yes else _ask_user)


def _ask_user(requests: str) -> None:
    """Asks on the terminal whether requests may be made.

    Raises:
        InvalidValueError: the user does not want them, or there is no terminal.
    """
    if not sys.stdin.isatty():
        raise InvalidValueError(f"--yes is missing, and without a terminal nobody can be asked: {requests}")
    try:
        reply = input("Go on? [y/N] ")
    except EOFError:
        reply = ""
    if reply.strip().lower() not in ("y", "yes"):
        raise InvalidValueError(f"{reply!r:.40} was given, allowed: y; nothing was played")


def _train(config: Config, resume: Path | None, console: Console) -> None:
    """Trains, with PyTorch, which other ways to exploit an agent need not have."""
    from gamespiel.training.run import train

    train(config, resume, console)


def run_leaderboard(args: argparse.Namespace, overrides: Overrides) -> None:
    """Play the benchmark of all games and traces; show the board."""
    import_modules(args.imports)

    from gamespiel.measure.board.prices import read_prices
    from gamespiel.measure.board.run import BoardOptions, play_board
    from gamespiel.measure.board.table import print_board
    from gamespiel.replay.board_page import write_board_page
    from gamespiel.replay.page import check_page
    from gamespiel.report.console import make_console

    if args.html is not None:
        check_page(args.html)
    options = make_options(BoardOptions, args, path=args.board)
    console = make_console()
    with lasting_output():  # the page is written also if nobody reads the tables to their end
        data = play_board(options, console)
        prices = read_prices(options.prices)
        print_board(console, data, prices)
        if args.html is not None:
            count = write_board_page(data, args.html, prices)
            print_plain(console, f"{count} episodes and the tables written to {args.html}")


def run_verify(args: argparse.Namespace, overrides: Overrides) -> None:
    """Play every game of a board again, and say what is wrong."""
    from gamespiel.measure.board.verification import verify_board

    verify_board(
        args.board,
        quick=args.quick,
        processes=args.processes,
        models=args.replay_models,
        share=args.share,
        seed=args.seed,
    )
