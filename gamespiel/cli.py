"""The command line: parses it and runs the command."""

import argparse
import errno
import io
import os
import select
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from gamespiel import __version__, arguments
from gamespiel.commands import evaluating, showing, training
from gamespiel.commands.configuration import Overrides
from gamespiel.config import ConfigError, presets
from gamespiel.config.files import read_layer
from gamespiel.config.layers import explain_unknown_option, layer_from_overrides
from gamespiel.config.schema import DOTTED
from gamespiel.errors import Mistakes, MistakesError, unknown_name_error
from gamespiel.report.text import lasting_output
from gamespiel.stopping import Stopped
from gamespiel.torch_environ import prepare_torch
from gamespiel.usage import explain, overview
from task_gym.errors import TaskGymError, quote
from task_gym.visible import show_controls

Entry = tuple[
    Callable[[argparse.Namespace, Overrides], None], Callable[[argparse.ArgumentParser], None], bool
]
"""A command's function, the one that adds its options, and whether its help has the configuration's keys."""

GROUPS: dict[str, dict[str, Entry]] = {
    "train": {
        "train": (training.run_train, arguments.add_train_options, True),
        "sft": (training.run_sft, arguments.add_sft_options, True),
        "schema": (training.run_schema, lambda parser: None, False),
        "merge": (training.run_merge, arguments.add_merge_options, False),
        "vllm-command": (training.run_vllm_command, arguments.add_vllm_command_options, False),
    },
    "measure": {
        "eval": (evaluating.run_eval, arguments.add_eval_options, True),
        "exploit": (evaluating.run_exploit, arguments.add_exploit_options, True),
        "leaderboard": (evaluating.run_leaderboard, arguments.add_leaderboard_options, False),
        "verify": (evaluating.run_verify, arguments.add_verify_options, False),
    },
    "look at runs": {
        "runs": (showing.run_runs, arguments.add_runs_options, False),
        "plot": (showing.run_plot, arguments.add_plot_options, False),
        "replay": (showing.run_replay, arguments.add_replay_options, False),
        "export": (training.run_export, arguments.add_export_options, False),
    },
    "play": {
        "games": (showing.run_games, arguments.add_games_options, False),
        "play": (showing.run_play, arguments.add_play_options, False),
        "watch": (showing.run_watch, arguments.add_watch_options, False),
        "serve": (showing.run_serve, arguments.add_serve_options, False),
    },
}
"""The commands by what they are for."""

COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}

KEYS_UNLISTED = ("play", "watch", "vllm-command")
"""Commands that take keys of the configuration without listing them in their help."""

HINT = """\
gamespiel COMMAND --help: the command's options. gamespiel --help ppo: a section
of the configuration, with its keys. gamespiel --help learning_rate: one key."""

OF_FILES = frozenset(
    getattr(errno, name)
    for name in (
        "ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EACCES", "EPERM", "ENOENT", "EEXIST", "EISDIR", "ENOTDIR",
        "ENAMETOOLONG", "ELOOP", "ENXIO",
    )
    if hasattr(errno, name)
)  # fmt: skip
"""Errors of files that the user can correct: a full disk, a name that cannot be, a missing permission."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; returns the exit status.

    It is 0, 2 for errors that the user can correct, 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP, or 1
    if the reader of the output has ended, as ``head`` does.
    """
    prepare_torch(os.environ)
    _prepare_streams()
    try:
        tokens, overrides = split_overrides(sys.argv[1:] if argv is None else argv)
        _check_command(tokens)
        args, extra = build_parser(tokens[0] if tokens[0] in COMMANDS else None).parse_known_args(tokens)
        _check_extra(extra, args, overrides)
        if overrides and not args.takes_keys:
            raise unknown_name_error("option", f"--{overrides[0][0]}", args.flags)
        args.run(args, overrides)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        if not _is_reader_gone():  # but that of another pipe
            raise
        return 1
    except OSError as error:
        if error.errno not in OF_FILES:
            raise
        _print_error(_explain_file_error(error))
        return 2
    except MistakesError as error:
        _print_error(str(error))
        return 2
    except TaskGymError as error:
        _print_error(" ".join(str(error).split()))
        return 2
    except Stopped as stop:
        _print_error("interrupted" if stop.number == signal.SIGINT else f"stopped by {stop}")
        return 128 + stop.number
    except KeyboardInterrupt:
        _print_error("interrupted")
        return 130
    return 0


def _check_command(tokens: Sequence[str]) -> None:
    """Raises unless a command is first, or an option such as ``--help``."""
    if not tokens:
        raise ConfigError(f"no command was given; allowed: {', '.join(COMMANDS)}")
    if not tokens[0].startswith("-") and tokens[0] not in COMMANDS:
        raise unknown_name_error("command", tokens[0], COMMANDS, listed=True)


def _explain_stray(token: str, args: argparse.Namespace) -> ConfigError:
    """Returns the error for an argument without an option, with the option that it may belong to."""
    from game_gym.games import DECLARED

    for flag, names in (
        ("--preset", presets()),
        ("--game", DECLARED),
        ("--agent", ("random", "first", "mcts")),
    ):
        if flag in args.flags and token in names:
            return ConfigError(f"unknown argument {token!r}; did you mean '{flag} {token}'?")
    return ConfigError(f"unknown argument {quote(token)}; what is given has an option before it, as --seed 1")


def _check_extra(extra: Sequence[str], args: argparse.Namespace, overrides: Overrides) -> None:
    """Raises if options are unknown; the error then also names the mistakes of files and of other options."""
    if not extra:
        return
    allowed = [*args.flags, *(f"--{name}" for name in DOTTED)]
    mistakes, before = Mistakes(), ""
    for token in extra:
        if token.startswith("--") or (token.startswith("-") and not before):
            mistakes.add(explain_unknown_option(token.partition("=")[0], allowed))
        elif not before.startswith("--") or "=" in before:  # else it is the value of that option
            mistakes.add(_explain_stray(token, args))
        before = token
    for file in getattr(args, "config", ()):
        with mistakes.collect():
            read_layer(file)
    with mistakes.collect():
        layer_from_overrides(overrides)
    mistakes.raise_all()


def _print_error(text: str) -> None:
    """Prints an error, unless the terminal has gone: the exit status must be the command's own."""
    rank = os.environ.get("RANK") if "TORCHELASTIC_RUN_ID" in os.environ else None
    speaker = "gamespiel" if rank in (None, "0") else f"gamespiel (rank {rank})"
    with lasting_output():
        print(f"{speaker}: {show_controls(text)}", file=sys.stderr)


def _prepare_streams() -> None:
    """Makes every text printable, in any locale, and a closed standard input an empty one."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 (for the rest of the process)


def _is_reader_gone() -> bool:
    """Returns whether nobody reads the standard output any more, which is then closed for good."""
    try:
        output = sys.stdout.fileno()
    except (AttributeError, OSError):  # there is none, or it is no file
        return False
    poll = select.poll()
    poll.register(output, 0)
    if not poll.poll(0):
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), output)  # or the interpreter would fail as it ends
    return True


def _explain_file_error(error: OSError) -> str:
    names = " -> ".join(repr(str(name)) for name in (error.filename, error.filename2) if name is not None)
    return f"{names}: {error.strerror}" if names else str(error.strerror)


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


def build_parser(command: str | None = None) -> argparse.ArgumentParser:
    """Returns the parser of everything but the overrides: of one command, or of all."""
    parser = _Parser(
        usage="gamespiel COMMAND [OPTION ...]",
        description="Train language models to play games, and evaluate them.",
    )
    parser.add_argument("--version", action="version", version=f"gamespiel {__version__}")
    subparsers = parser.add_subparsers(prog="gamespiel", required=True, help=argparse.SUPPRESS)
    for name, (run, add_options, has_keys) in COMMANDS.items():
        if command not in (name, None):
            continue
        sub: _Parser = subparsers.add_parser(name, description=_summarize(run), has_keys=has_keys)
        sub.add_argument("--version", action="version", version=f"gamespiel {__version__}")
        add_options(sub)
        if has_keys:
            required = [
                [*action.option_strings, action.metavar] for action in sub._actions if action.required
            ]
            words = [str(word) for action in required for word in action]
            sub.usage = " ".join([sub.prog, *words, "[OPTION ...] [--SECTION.KEY VALUE ...]"])
        sub.set_defaults(run=run, flags=[flag for action in sub._actions for flag in action.option_strings])
        sub.set_defaults(takes_keys=has_keys or name in KEYS_UNLISTED)
    width = max(map(len, COMMANDS))
    lines = [
        line
        for title, group in GROUPS.items()
        for line in (
            f"{title}:",
            *(f"  {name:{width}}  {_summarize(run)}" for name, (run, *_) in group.items()),
            "",
        )
    ]
    parser.epilog = "\n".join([*lines, HINT])
    return parser


def _summarize(run: Callable[[argparse.Namespace, Overrides], None]) -> str:
    return (run.__doc__ or "").strip()


class _Parser(argparse.ArgumentParser):
    """Leaves errors to ``main``, and makes the configuration's part of the help only when it is shown."""

    def __init__(self, *, has_keys: bool = False, **keywords: Any) -> None:
        look = argparse.RawDescriptionHelpFormatter
        super().__init__(formatter_class=look, allow_abbrev=False, add_help=False, **keywords)
        self.has_keys = has_keys
        text = "this, or the help of a section or key"
        self.add_argument("-h", "--help", nargs="?", metavar="NAME", action=_Help, help=text)

    def format_help(self) -> str:
        if self.has_keys:
            self.epilog = overview()
        return super().format_help()

    def error(self, message: str) -> NoReturn:
        raise ConfigError(message)


class _Help(argparse.Action):
    """Shows a command's help, or that of a section of the configuration, or of one key."""

    def __call__(self, parser: argparse.ArgumentParser, _: Any, name: Any, option: str | None = None) -> None:
        if name in COMMANDS:
            build_parser(name).parse_args([name, "--help"])
        print(parser.format_help() if name is None else explain(name), end="")
        parser.exit()
