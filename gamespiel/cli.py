"""The command line. It only parses: ``training.train`` and ``evaluation.evaluate`` do the work."""

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from gamespiel import __version__
from gamespiel.agents.installed import check_trainer
from gamespiel.config import (
    DEFAULT_PRESET,
    DEFAULT_PRESETS,
    ConfigError,
    Resolved,
    resolve_layers,
    saved_config,
)
from gamespiel.config.schema import DOTTED, file_schema
from gamespiel.config.sections import EnvConfig, ModelConfig
from gamespiel.endpoints import USAGE
from gamespiel.errors import unknown
from gamespiel.kinds import KINDS
from gamespiel.options import DECODERS, EvalOptions
from gamespiel.serving.options import KINDS as SERVED
from gamespiel.serving.options import ServeOptions
from gamespiel.terminal.commands import (
    add_export_options,
    add_games_options,
    add_play_options,
    add_replay_options,
    add_trace_options,
    add_watch_options,
    game_flags,
)
from gamespiel.usage import config_help
from task_gym.checks import BACKENDS
from task_gym.errors import TaskGymError
from task_gym.remote.settings import TOKEN

Overrides = list[tuple[str, str]]
"""``--section.key VALUE`` options as (section.key, VALUE), in the order given."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit status: 0, 2 for errors that the user can correct, 130 for Ctrl-C."""
    # Read by OpenMP when torch is imported, which is later. Threads that spin while they wait for one another
    # make small models several times slower as soon as anything else runs on the machine.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        tokens, overrides = split_overrides(sys.argv[1:] if argv is None else argv)
        args, extra = build_parser().parse_known_args(tokens)
        if extra:
            kind = "option" if extra[0].startswith("-") else "argument"
            raise unknown(kind, extra[0].partition("=")[0], [*args.flags, *(f"--{name}" for name in DOTTED)])
        run: Callable[[argparse.Namespace, Overrides], None] = args.run
        run(args, overrides)
    except TaskGymError as error:
        print(f"gamespiel: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("gamespiel: interrupted", file=sys.stderr)
        return 130
    return 0


def split_overrides(argv: Sequence[str]) -> tuple[list[str], Overrides]:
    """Returns ``argv`` without ``--section.key VALUE`` and ``--section.key=VALUE``, and these options."""
    rest: list[str] = []
    overrides: Overrides = []
    tokens = iter(argv)
    for token in tokens:
        name, equals, value = token.partition("=")
        if not (name.startswith("--") and "." in name):
            rest.append(token)
            continue
        if not equals:
            following = next(tokens, None)
            if following is None or following.startswith("--"):
                raise ConfigError(f"option {name} needs a value")
            value = following
        overrides.append((name.removeprefix("--"), value))
    return rest, overrides


def build_parser() -> argparse.ArgumentParser:
    """Returns the parser of everything but the overrides."""
    parser = _Parser(prog="gamespiel", description="Train language models to play games, and evaluate them.")
    parser.add_argument("--version", action="version", version=f"gamespiel {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: Callable[[argparse.Namespace, Overrides], None]) -> _Parser:
        summary = (run.__doc__ or "").strip()
        sub: _Parser = commands.add_parser(name, description=summary, help=summary)
        sub.add_argument("--version", action="version", version=f"gamespiel {__version__}")
        sub.set_defaults(run=run)
        return sub

    def configured(name: str, run: Callable[[argparse.Namespace, Overrides], None]) -> _Parser:
        sub = command(name, run)
        sub.add_argument("--preset", metavar="NAME", help=f"a preset; {DEFAULT_PRESET} if nothing is given")
        sub.add_argument(
            "--config",
            nargs="+",
            action="extend",
            default=[],
            metavar="FILE",
            help="JSON or YAML; later ones win",
        )
        sub.add_argument("--seed", metavar="N", help="the same as --run.seed")
        sub.add_argument("--env", metavar="TYPE", help=f"{' or '.join(KINDS)}, the same as --env.env_type")
        return sub

    train = configured("train", run_train)
    _add_train_options(train)
    evaluate = configured("eval", run_eval)
    _add_eval_options(evaluate)
    schema = command("schema", run_schema)
    schema.has_keys = False

    serve = command("serve", run_serve)
    serve.has_keys = False
    _add_serve_options(serve)

    games, play = command("games", run_games), command("play", run_play)
    watch, trace = command("watch", run_watch), command("trace", run_trace)
    replay, export = command("replay", run_replay), command("export", run_export)
    people = (games, play, watch, trace, replay, export)
    for sub in people:
        sub.has_keys = False
    add_games_options(games)
    add_play_options(play)
    add_watch_options(watch)
    add_trace_options(trace)
    add_replay_options(replay)
    add_export_options(export)

    for sub in (train, evaluate, schema, serve, *people):
        sub.set_defaults(flags=[flag for action in sub._actions for flag in action.option_strings])
    return parser


def _add_train_options(train: argparse.ArgumentParser) -> None:
    start = train.add_mutually_exclusive_group()
    start.add_argument(
        "--resume",
        "--resume_from",
        type=Path,
        metavar="DIR",
        help="go on with a run, from its newest checkpoint",
    )
    start.add_argument(
        "--from",
        dest="init_from",
        type=Path,
        metavar="DIR",
        help="a new run, configured as that one, with the weights of its checkpoint",
    )
    train.add_argument("--output_dir", metavar="DIR", help="the same as --run.output_dir")
    train.add_argument(
        "--plan",
        nargs="?",
        const="",
        metavar="GIB",
        help="only say what memory it takes, and which presets fit this GPU, or one of so many GiB",
    )


def _add_eval_options(evaluate: argparse.ArgumentParser) -> None:
    agents = "; ".join(f"with --env {name}: {kind.agents}" for name, kind in KINDS.items())
    player = evaluate.add_mutually_exclusive_group()
    player.add_argument("--checkpoint", type=Path, metavar="RUN", help="a run, or one of its checkpoints")
    player.add_argument("--agent", metavar="NAME", help=agents)
    evaluate.add_argument(
        "--num_episodes", type=int, default=100, metavar="N", help="episodes per seat [100]"
    )
    evaluate.add_argument("--opponent", metavar="NAME", help="the same as --env.opponent")
    evaluate.add_argument(
        "--exact", action="store_true", help="the exact value, without sampling (small games)"
    )
    evaluate.add_argument("--greedy", action="store_true", help="the likeliest action instead of a sample")
    evaluate.add_argument(
        "--unmasked",
        action="store_true",
        help="also the same games without the mask: replies as text, sampled and greedy",
    )
    evaluate.add_argument(
        "--decode",
        default=DECODERS[0],
        metavar="HOW",
        help="choice, or text: such replies alone; with --env trace they are the output [choice]",
    )
    lengths = ", ".join(
        f"{kind.unit} {kind.max_new_tokens}" for kind in KINDS.values() if kind.reply_environment
    )
    evaluate.add_argument(
        "--max_new_tokens", type=int, metavar="N", help=f"tokens that cut a reply [{lengths}]"
    )
    evaluate.add_argument("--output", type=Path, metavar="FILE.json", help="write the results there too")
    evaluate.add_argument(
        "--save_games", type=Path, metavar="FILE.jsonl", help="keep the episodes, for replay and export"
    )
    _add_endpoint_options(evaluate)


def _add_endpoint_options(evaluate: argparse.ArgumentParser) -> None:
    evaluate.add_argument(
        "--backend", choices=BACKENDS, help="affinetes: play on a server (--env.base_url) or in a container"
    )
    group = evaluate.add_argument_group(f"with --agent {USAGE}")
    for name, kind, metavar, text in (
        ("concurrency", int, "N", "episodes at once [8]"),
        ("temperature", float, "T", "[the endpoint's own]"),
        ("request_s", float, "SECONDS", "one reply may take so long [120]"),
        ("episode_s", float, "SECONDS", "one episode may take so long [games 1800, traces 600]"),
    ):
        group.add_argument(f"--{name}", type=kind, metavar=metavar, help=text)
    group.add_argument(
        "--prices", type=float, nargs=2, metavar=("IN", "OUT"), help="dollars per million tokens"
    )
    group.add_argument("--whole_game", action="store_true", help="the server's own evaluate plays")
    group.add_argument(
        "--resume", action="store_true", help="play the rest of an evaluation that was stopped"
    )


def _add_serve_options(serve: argparse.ArgumentParser) -> None:
    default = ServeOptions()
    serve.epilog = f"The environment variable {TOKEN} is the token that every call needs, if it is set."
    serve.add_argument(
        "--env", default=default.env, metavar="TYPE", help=f"{' or '.join(SERVED)} [{default.env}]"
    )
    serve.add_argument(
        "--host", default=default.host, metavar="ADDRESS", help=f"the address to listen on [{default.host}]"
    )
    serve.add_argument(
        "--port", type=int, default=default.port, metavar="N", help=f"0 for a free one [{default.port}]"
    )
    serve.add_argument(
        "--source", default=default.source, metavar="NAME", help="programs, with --env trace [builtin]"
    )
    for name, kind, what in (
        ("max_sessions", int, "episodes at once"),
        ("idle_s", float, "seconds without a call after which an episode is dropped"),
        ("max_body", int, "bytes of a request"),
    ):
        value = getattr(default, name)
        serve.add_argument(f"--{name}", type=kind, default=value, metavar="N", help=f"{what} [{value}]")
    for name, what in (
        ("hosts", "names with a dot under which it may be asked without a token"),
        ("evaluate_hosts", "hosts that evaluate may ask; '*' for all"),
    ):
        serve.add_argument(f"--{name}", type=_listed, metavar="HOST,…", help=what)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def run_train(args: argparse.Namespace, overrides: Overrides) -> None:
    """Train a policy."""
    flags = [("run.seed", args.seed), ("env.env_type", args.env), ("run.output_dir", args.output_dir)]
    if args.init_from is not None:
        flags.append(("run.init_from", str(args.init_from)))
    run, option = (args.init_from, "--from") if args.init_from is not None else (args.resume, "--resume")
    config, layers = _resolve(args, flags, overrides, DEFAULT_PRESETS, run=run, option=option)
    check_trainer("train")
    if args.plan is not None:
        from gamespiel import planning

        print(f"configuration: {layers}")
        planning.show(config, args.plan)
        return
    _say(layers)

    from gamespiel.training import train

    train(config, resume=args.resume)


def run_eval(args: argparse.Namespace, overrides: Overrides) -> None:
    """Evaluate a trained policy or a named agent."""
    flags = [("run.seed", args.seed), ("env.env_type", args.env), ("env.opponent", args.opponent)]
    named = args.preset is not None or args.config or "model.model_name" in dict(overrides)
    if args.checkpoint is None and args.agent is None and not named:
        raise ConfigError(
            "who is evaluated? give --checkpoint RUN, --agent NAME, or a model with --model.model_name NAME"
        )
    # Traces without a preset are all of them; tiny-trace trains on a part. The default preset goes with its
    # own model: another model, without a run, is evaluated with the defaults.
    model = dict(overrides).get("model.model_name", ModelConfig.model_name)
    other = args.checkpoint is None and args.agent is None and model != ModelConfig.model_name
    defaults = {} if other else {EnvConfig.env_type: DEFAULT_PRESET}
    config, layers = _resolve(args, flags, overrides, defaults, run=args.checkpoint, option="--checkpoint")
    mode = config.env.env_mode
    if args.backend is not None and (args.backend == "local") != (mode == "local"):
        served = "url" if config.env.base_url is not None else "docker"
        flags.append(("env.env_mode", "local" if args.backend == "local" else served))
        config, layers = _resolve(
            args, flags, overrides, defaults, run=args.checkpoint, option="--checkpoint"
        )
    given = {name: getattr(args, name) for name in ("concurrency", "temperature", "request_s", "episode_s")}
    options = EvalOptions(
        config=config,
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

        print(f"configuration: {layers}", flush=True)
        evaluate_endpoint(options)
        return
    check_trainer("eval")
    _say(layers)

    from gamespiel.evaluation import evaluate

    evaluate(options)


def run_schema(args: argparse.Namespace, overrides: Overrides) -> None:
    """Print the JSON schema of configuration files."""
    _refuse(overrides, args)
    print(json.dumps(file_schema(), indent=2, ensure_ascii=False))


def run_serve(args: argparse.Namespace, overrides: Overrides) -> None:
    """Serve games or traces over HTTP, for affinetes' clients."""
    _refuse(overrides, args)
    options = ServeOptions(
        args.env, args.host, args.port, args.source, args.max_sessions, args.idle_s, args.max_body,
        args.hosts or (), args.evaluate_hosts,
    )  # fmt: skip

    from gamespiel.serving.run import serve

    serve(options)


def run_games(args: argparse.Namespace, overrides: Overrides) -> None:
    """List the games."""
    _refuse(overrides, args)

    from rich.console import Console

    from gamespiel.terminal.catalogue import show_games

    show_games(Console(), as_json=args.json)


def run_play(args: argparse.Namespace, overrides: Overrides) -> None:
    """Play a game in the terminal."""
    flags = game_flags(args)
    given = {key for key, value in [*flags, *overrides] if value is not None}
    if args.checkpoint is None and not given & {"env.game", "env.task_id", "env.task_ids"}:
        raise ConfigError("what is played? give --game NAME, --task_id N or --checkpoint RUN")
    config, _ = _resolve(args, flags, overrides, {}, run=args.checkpoint, option="--checkpoint")

    if args.checkpoint is not None:
        check_trainer("play --checkpoint")

    from gamespiel.terminal.play import play

    play(config.env, seed=args.seed, checkpoint=args.checkpoint)


def run_watch(args: argparse.Namespace, overrides: Overrides) -> None:
    """Watch a trained policy play, move by move."""
    config, _ = _resolve(args, game_flags(args), overrides, {}, run=args.checkpoint, option="--checkpoint")

    check_trainer("watch")

    from gamespiel.terminal.watch import watch

    watch(
        config.env,
        args.checkpoint,
        episodes=args.episodes,
        seed=args.seed,
        greedy=args.greedy,
        delay=args.delay,
    )


def run_trace(args: argparse.Namespace, overrides: Overrides) -> None:
    """Say what a program prints, and see the scores."""
    _refuse(overrides, args)

    from gamespiel.terminal.trace import trace

    trace(task_id=args.task_id, level=args.level, family=args.family, seed=args.seed)


def run_replay(args: argparse.Namespace, overrides: Overrides) -> None:
    """Write a page that replays recorded episodes."""
    _refuse(overrides, args)

    from gamespiel.replay.page import replay

    replay(args.place, args.html)


def run_export(args: argparse.Namespace, overrides: Overrides) -> None:
    """Write recorded episodes as rows in chat format, for supervised training."""
    _refuse(overrides, args)

    from gamespiel.replay.export import export

    export(args.place, args.output, results=args.result)


def _refuse(overrides: Overrides, args: argparse.Namespace) -> None:
    """Raises if configuration keys are given to a command that has none."""
    if overrides:
        raise unknown("option", f"--{overrides[0][0]}", args.flags)


def _resolve(
    args: argparse.Namespace,
    flags: Sequence[tuple[str, str | None]],
    overrides: Overrides,
    presets: Mapping[str, str],
    *,
    run: Path | None,
    option: str,
) -> Resolved:
    """Returns the configuration asked for: on top of a run's own, of a preset, or of the defaults.

    Args:
        args: The parsed options.
        flags: Options that stand for a key, with their values or None.
        overrides: The ``--section.key`` options.
        presets: By env_type, the preset in force if neither a preset nor a file is named.
        run: The run or checkpoint whose configuration is the base, if there is one.
        option: The option that names ``run``.
    """
    given = [*((key, value) for key, value in flags if value is not None), *overrides]
    if run is not None:
        if args.preset is not None:
            raise ConfigError(f"--preset cannot go with {option}: the run's own configuration holds")
        base = saved_config(run)
        if option == "--from":  # a new run has a folder of its own
            base = dataclasses.replace(base, run=dataclasses.replace(base.run, output_dir=None))
        return resolve_layers(None, args.config, given, base=base, base_name=f"of {run}")
    kind = dict(given).get("env.env_type", EnvConfig.env_type)
    preset = args.preset or (None if args.config else presets.get(kind))
    return resolve_layers(preset, args.config, given)


def _say(layers: str) -> None:
    """Prints the first lines at once: importing PyTorch and transformers takes seconds."""
    print(f"loading PyTorch and transformers\nconfiguration: {layers}", flush=True)


class _Parser(argparse.ArgumentParser):
    """Leaves errors to :func:`main`, and makes the configuration's part of the help only when it is shown."""

    has_keys = True

    def __init__(self, **keywords: Any) -> None:
        look = argparse.RawDescriptionHelpFormatter
        super().__init__(formatter_class=look, allow_abbrev=False, **keywords)

    def format_help(self) -> str:
        self.epilog = config_help() if self.has_keys else None
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        raise ConfigError(message)
