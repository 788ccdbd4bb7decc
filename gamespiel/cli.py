"""The command line. It only parses: `training.train` and `evaluation.evaluate` do the work."""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from gamespiel import __version__
from gamespiel.config import DEFAULT_PRESET, DEFAULT_PRESETS, Config, ConfigError, resolve, saved_config
from gamespiel.config.errors import unknown
from gamespiel.config.schema import DOTTED
from gamespiel.config.sections import EnvConfig
from gamespiel.options import AGENTS, TRACE_AGENTS, EvalOptions
from gamespiel.usage import config_help
from task_gym.errors import TaskGymError

Overrides = list[tuple[str, str]]
"""`--section.key VALUE` options as (section.key, VALUE), in the order given."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit status: 0, 2 for what the caller can mend, 130 when interrupted."""
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
    """Takes `--section.key VALUE` and `--section.key=VALUE` out of `argv`; returns the rest, and those."""
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
    """The parser of everything but the overrides."""
    parser = _parser(_Parser, "gamespiel", "Train language models to play games, and evaluate them.")
    parser.add_argument("--version", action="version", version=f"gamespiel {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: Callable[[argparse.Namespace, Overrides], None]) -> argparse.ArgumentParser:
        summary = (run.__doc__ or "").strip()
        sub = _parser(commands.add_parser, name, summary, help=summary)
        sub.set_defaults(run=run)
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
        sub.add_argument("--env", metavar="TYPE", help="openspiel or trace, the same as --env.env_type")
        return sub

    train = command("train", run_train)
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

    evaluate = command("eval", run_eval)
    player = evaluate.add_mutually_exclusive_group()
    player.add_argument("--checkpoint", type=Path, metavar="RUN", help="a run, or one of its checkpoints")
    player.add_argument("--agent", metavar="NAME", help=f"{AGENTS}; with --env trace: {TRACE_AGENTS}")
    evaluate.add_argument(
        "--num_episodes", type=int, default=100, metavar="N", help="games a seat, or traces [100]"
    )
    evaluate.add_argument("--opponent", metavar="NAME", help="the same as --env.opponent")
    evaluate.add_argument(
        "--exact", action="store_true", help="the exact value, without sampling (small games)"
    )
    evaluate.add_argument("--greedy", action="store_true", help="the likeliest action instead of a sample")
    evaluate.add_argument("--output", type=Path, metavar="FILE.json", help="write the results there too")

    for sub in (train, evaluate):
        sub.set_defaults(flags=[flag for action in sub._actions for flag in action.option_strings])
    return parser


def run_train(args: argparse.Namespace, overrides: Overrides) -> None:
    """Train a policy."""
    flags = [("run.seed", args.seed), ("env.env_type", args.env), ("run.output_dir", args.output_dir)]
    if args.init_from is not None:
        flags = [("run.output_dir", "null"), *flags, ("run.init_from", str(args.init_from))]
    run, option = (args.init_from, "--from") if args.init_from is not None else (args.resume, "--resume")
    config = _config(args, flags, overrides, DEFAULT_PRESETS, run=run, option=option)
    _say_loading()

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
    # Traces without a preset are all of them; tiny-trace trains on a part. A named model comes without the
    # preset that was chosen for another.
    untrained = args.checkpoint is None and args.agent is None
    defaults = {} if untrained else {"openspiel": DEFAULT_PRESET}
    options = EvalOptions(
        config=_config(args, flags, overrides, defaults, run=args.checkpoint, option="--checkpoint"),
        checkpoint=args.checkpoint,
        agent=args.agent,
        num_episodes=args.num_episodes,
        exact=args.exact,
        greedy=args.greedy,
        output=args.output,
    )
    _say_loading()

    from gamespiel.evaluation import evaluate

    evaluate(options)


def _config(
    args: argparse.Namespace,
    flags: Sequence[tuple[str, str | None]],
    overrides: Overrides,
    presets: Mapping[str, str],
    *,
    run: Path | None,
    option: str,
) -> Config:
    """The configuration asked for: a run's own as the base if one is named, else a preset or the defaults.

    presets: by env_type, the one that holds where neither a preset nor a file is named.
    """
    given = [(key, value) for key, value in flags if value is not None]
    if run is not None:
        if args.preset is not None:
            raise ConfigError(f"--preset cannot go with {option}: the run's own configuration holds")
        return resolve(files=args.config, overrides=[*given, *overrides], base=saved_config(run))
    kind = dict([*given, *overrides]).get("env.env_type", EnvConfig.env_type)
    preset = args.preset or (None if args.config else presets.get(kind))
    return resolve(preset, args.config, [*given, *overrides])


def _say_loading() -> None:
    """Prints the first line at once: importing PyTorch and transformers takes seconds."""
    print("loading PyTorch and transformers", flush=True)


class _Parser(argparse.ArgumentParser):
    """Errors are ours to print, in one line."""

    def error(self, message: str) -> NoReturn:
        raise ConfigError(message)


def _parser(
    make: Callable[..., argparse.ArgumentParser], name: str, summary: str, **keywords: str
) -> argparse.ArgumentParser:
    return make(
        name,
        description=summary,
        epilog=config_help(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        **keywords,
    )
