"""The options of the commands for people. Nothing here is slow to import: every command reads it."""

from __future__ import annotations

import argparse
from pathlib import Path

GAME_OPTIONS = (("game", "NAME"), ("task_id", "N"), ("opponent", "NAME"))
"""Options that stand for the key of that name in the ``env`` section, with what they take."""


def add_games_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``gamespiel games``."""
    parser.add_argument("--json", action="store_true", help="as JSON, with every variant's parameters")


def add_play_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``gamespiel play``."""
    _add_game_options(parser)
    parser.add_argument("--seed", type=int, metavar="N", help="the game's seed; drawn if it is not given")
    parser.add_argument(
        "--checkpoint", type=Path, metavar="RUN", help="show what this run's policy would do, and its value"
    )


def add_watch_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``gamespiel watch``."""
    parser.add_argument(
        "--checkpoint", type=Path, metavar="RUN", required=True, help="a run, or one of its checkpoints"
    )
    _add_game_options(parser)
    parser.add_argument("--episodes", type=int, default=1, metavar="N", help="episodes to play [1]")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="the first episode's seed [0]")
    parser.add_argument("--greedy", action="store_true", help="the likeliest action instead of a sample")
    parser.add_argument("--delay", type=float, default=0.0, metavar="S", help="seconds between turns [0]")


def add_trace_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``gamespiel trace``."""
    parser.add_argument("--task_id", type=int, metavar="N", help="the task; drawn if it is not given")
    parser.add_argument("--level", type=int, metavar="N", help="draw a task of this level, 1 … 10")
    parser.add_argument("--family", metavar="NAME", help="draw a task of this family")
    parser.add_argument("--seed", type=int, metavar="N", help="the seed of the draw")


def add_replay_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``gamespiel replay``."""
    _add_place(parser)
    parser.add_argument(
        "--html", type=Path, metavar="FILE.html", default=Path("replay.html"), help="[replay.html]"
    )


def add_export_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``gamespiel export``."""
    _add_place(parser)
    parser.add_argument("--output", type=Path, metavar="FILE.jsonl", required=True, help="the file of rows")
    parser.add_argument(
        "--result", nargs="+", default=[], metavar="HOW", help="only episodes that ended so: win, draw, …"
    )


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "place", type=Path, metavar="RUN_OR_FILE", help="a run, or a file of gamespiel eval --save_games"
    )


def _add_game_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(preset=None, config=[])
    for name, takes in GAME_OPTIONS:
        parser.add_argument(f"--{name}", metavar=takes, help=f"the same as --env.{name}")


def game_flags(args: argparse.Namespace) -> list[tuple[str, str | None]]:
    """Returns these options as keys with their values, or None."""
    return [(f"env.{name}", getattr(args, name)) for name, _ in GAME_OPTIONS]
