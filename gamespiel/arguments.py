"""The options of each command. Nothing here is slow to import: every command reads it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _ActionsContainer
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gamespiel.config import DEFAULT_PRESET
from gamespiel.endpoints import EPISODE_S, USAGE
from gamespiel.kinds import KINDS
from gamespiel.measure.options import EvalOptions
from gamespiel.serving.options import KINDS as SERVED
from gamespiel.serving.options import ServeOptions
from task_gym.arguments import BACKENDS
from task_gym.remote.settings import TOKEN

GAME_OPTIONS = (("game", "NAME"), ("task_id", "N"), ("opponent", "NAME"))
"""Options that set the key of that name in the ``env`` section, with what they take."""

RUN = "a run, or one of its checkpoints"
GREEDY = "the likeliest action instead of a sample"


def _option(
    parser: _ActionsContainer,
    name: str,
    metavar: str,
    text: str,
    kind: Callable[[str], Any] = str,
    **more: Any,
) -> None:
    parser.add_argument(f"--{name}", metavar=metavar, help=text, type=kind, **more)


def _path(parser: _ActionsContainer, name: str, metavar: str, text: str, **more: Any) -> None:
    _option(parser, name, metavar, text, Path, **more)


def _number(parser: _ActionsContainer, name: str, default: float, text: str, metavar: str = "N") -> None:
    """Adds an option of a number, of the default's type; the help ends with the default."""
    _option(parser, name, metavar, f"{text} [{default}]", type(default), default=default)


def _flag(parser: _ActionsContainer, name: str, text: str) -> None:
    parser.add_argument(f"--{name}", action="store_true", help=text)


def _add_config_options(parser: ArgumentParser) -> None:
    _option(parser, "preset", "NAME", f"a preset; {DEFAULT_PRESET} if nothing is given")
    files = "JSON or YAML; later ones win"
    _option(parser, "config", "FILE", files, nargs="+", action="extend", default=[])
    _option(parser, "seed", "N", "the same as --run.seed")
    _option(parser, "env", "TYPE", f"{' or '.join(KINDS)}, the same as --env.env_type")
    _add_task_options(parser)


def _add_game_options(parser: ArgumentParser) -> None:
    parser.set_defaults(preset=None, config=[])
    _add_task_options(parser)


def _add_task_options(parser: ArgumentParser) -> None:
    for name, metavar in GAME_OPTIONS:
        _option(parser, name, metavar, f"the same as --env.{name}")
    _add_import_option(parser)


def _add_import_option(parser: ArgumentParser) -> None:
    text = "import a module of your own, which registers opponents, games or rewards; may be repeated"
    _option(parser, "import", "MODULE", text, dest="imports", action="append", default=[])


def game_flags(args: Namespace) -> list[tuple[str, str]]:
    """Returns the options of ``GAME_OPTIONS`` that are given, as keys with their values."""
    values = ((f"env.{name}", getattr(args, name)) for name, _ in GAME_OPTIONS)
    return [(key, value) for key, value in values if value is not None]


def add_train_options(train: ArgumentParser) -> None:
    """Adds the options of ``gamespiel train``."""
    _add_config_options(train)
    start = train.add_mutually_exclusive_group()
    resumed = "go on with a run; RUN@STEP goes back; auto: if there is one"
    start.add_argument("--resume", "--resume_from", type=Path, metavar="DIR", help=resumed)
    _path(start, "from", "DIR", "a new run, with the keys and weights of that one", dest="init_from")
    _option(train, "output_dir", "DIR", "the same as --run.output_dir")
    plan = "only say what memory it takes, and which presets fit this GPU, or one of so many GiB"
    _option(train, "plan", "GIB", plan, nargs="?", const="")


def add_eval_options(evaluate: ArgumentParser) -> None:
    """Adds the options of ``gamespiel eval``."""
    _add_config_options(evaluate)
    agents = "; ".join(f"with --env {name}: {kind.baselines.names}" for name, kind in KINDS.items())
    writing = [kind for kind in KINDS.values() if kind.replies]
    lengths = ", ".join(f"{kind.unit} {kind.replies.max_new_tokens}" for kind in writing if kind.replies)
    player = evaluate.add_mutually_exclusive_group()
    _path(player, "checkpoint", "RUN", RUN)
    _option(player, "agent", "NAME", agents)
    _option(player, "compare", "AGENT", "runs and agents: all of them play the same deals", nargs="+")
    episodes = "episodes per seat; with --compare deals per game"
    _number(evaluate, "num_episodes", EvalOptions.num_episodes, episodes)
    _flag(evaluate, "exact", "the exact value, without sampling (small games)")
    _flag(evaluate, "greedy", GREEDY)
    _flag(evaluate, "unmasked", "also the same games without the mask: replies as text, sampled and greedy")
    decode = "choice, or text: only such replies; with --env trace they are the output [choice]"
    _option(evaluate, "decode", "HOW", decode, default=EvalOptions.decode)
    track = (
        "masked (choices among the legal actions), unmasked (replies, with the list of legal actions in "
        "the prompt) or unlisted (replies, without the list) [as the run was trained]"
    )
    _option(evaluate, "track", "NAME", track)
    _option(evaluate, "max_new_tokens", "N", f"tokens that cut a reply [{lengths}]", int)
    _path(evaluate, "output", "FILE.json", "write the results there too")
    clear = "with --compare: stop when it is clear who is better, after --num_episodes deals at most"
    _flag(evaluate, "until_clear", clear)
    detect = "with --compare: say how many deals would tell this difference in score [0.05]"
    _option(evaluate, "detect", "X", detect, float)
    _path(evaluate, "save_games", "FILE.jsonl", "keep the episodes, for replay and export")
    backends = "affinetes: play on a server (--env.base_url) or in a container"
    evaluate.add_argument("--backend", choices=BACKENDS, help=backends)
    group = evaluate.add_argument_group(f"with --agent {USAGE}")
    limits = [f"{kind.unit} {EPISODE_S[kind.served_as]:g}" for kind in KINDS.values() if kind.served_as]
    _option(group, "concurrency", "N", f"episodes at once [{EvalOptions.concurrency}]", int)
    _option(group, "temperature", "T", "[the endpoint's own]", float)
    _option(group, "request_s", "SECONDS", f"a reply may pause so long [{EvalOptions.request_s:g}]", float)
    _option(group, "episode_s", "SECONDS", f"one episode may take so long [{', '.join(limits)}]", float)
    prices = "dollars per million tokens"
    group.add_argument("--prices", type=float, nargs=2, metavar=("IN", "OUT"), help=prices)
    _flag(group, "whole_game", "the server's own evaluate plays")
    _flag(group, "resume", "play the rest of an evaluation that was stopped")


def add_exploit_options(exploit: ArgumentParser) -> None:
    """Adds the options of ``gamespiel exploit``."""
    exploit.add_argument("agent", metavar="AGENT", help=f"a run, RUN@STEP, RUN@best, a baseline, or {USAGE}")
    _add_config_options(exploit)
    methods = (
        "exact (small games, known probabilities), search, train [exact, else search and train; of an "
        "endpoint search]"
    )
    _option(exploit, "methods", "HOW", methods, nargs="+", default=[])
    _number(exploit, "num_episodes", 200, "deals on which the exploiter is measured, from both seats")
    choose = "other deals, on which it is chosen; against endpoints at most num_episodes"
    _number(exploit, "choose_episodes", 50, choose)
    _number(exploit, "simulations", 100, "simulations per move of a search")
    _number(exploit, "keep", 20, "lost games that are kept")
    _path(exploit, "output", "FILE.json", "write the results there")
    _flag(exploit, "yes", "do not ask before an endpoint is sent requests")


def add_serve_options(serve: ArgumentParser) -> None:
    """Adds the options of ``gamespiel serve``."""
    default = ServeOptions()
    serve.epilog = f"The environment variable {TOKEN} is the token that every call needs, if it is set."
    _option(serve, "env", "TYPE", f"{' or '.join(SERVED)} [{default.env}]", default=default.env)
    host = f"the address to listen on [{default.host}]"
    _option(serve, "host", "ADDRESS", host, default=default.host)
    _number(serve, "port", default.port, "0 for a free one")
    _option(serve, "source", "NAME", "programs, with --env trace [builtin]", default=default.source)
    _option(serve, "injector", "NAME", "debug prints: safe or affine [safe]", default=default.injector)
    _add_import_option(serve)
    _number(serve, "max_sessions", default.max_sessions, "episodes at once")
    _number(serve, "idle_s", default.idle_s, "seconds without a call after which an episode is dropped")
    _number(serve, "max_body", default.max_body, "bytes of a request")
    each = "episodes of one address at once [half of max_sessions]"
    _option(serve, "max_sessions_per_caller", "N", each, int)
    search = "seconds of processor time for the opponents' searches of a call"
    _number(serve, "search_s", default.search_s, search)
    for name, text in (
        ("hosts", "names with a dot under which it may be asked without a token"),
        ("evaluate_hosts", "hosts that evaluate may ask; '*' for all"),
        ("key_hosts", "hosts that get this server's CHUTES_API_KEY, beside those of chutes.ai"),
    ):
        _option(serve, name, "HOST,…", text, _split_list)
    _flag(serve, "upstream_search", "the opponent mcts is upstream's search in Python")


def _split_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def add_games_options(parser: ArgumentParser) -> None:
    """Adds the options of ``gamespiel games``."""
    _add_import_option(parser)
    _flag(parser, "json", "as JSON, with every variant's parameters")


def add_play_options(parser: ArgumentParser) -> None:
    """Adds the options of ``gamespiel play``."""
    _add_game_options(parser)
    _option(parser, "seed", "N", "the game's seed; drawn if it is not given", int)
    _path(parser, "checkpoint", "RUN", "show what this run's policy would do, and its value")


def add_watch_options(parser: ArgumentParser) -> None:
    """Adds the options of ``gamespiel watch``."""
    _path(parser, "checkpoint", "RUN", RUN, required=True)
    _add_game_options(parser)
    _number(parser, "episodes", 1, "episodes to play")
    _number(parser, "seed", 0, "the first episode's seed")
    _flag(parser, "greedy", GREEDY)
    _option(parser, "delay", "S", "seconds between turns [0]", float, default=0.0)


def add_replay_options(parser: ArgumentParser) -> None:
    """Adds the options of ``gamespiel replay``."""
    _add_place(parser)
    _path(parser, "html", "FILE.html", "[replay.html]", default=Path("replay.html"))
    files = "open files that the parameters of recorded games name: for records that you trust"
    _flag(parser, "allow_files", files)


def add_export_options(parser: ArgumentParser) -> None:
    """Adds the options of ``gamespiel export``."""
    _add_place(parser)
    _path(parser, "output", "FILE.jsonl", "the file of rows", required=True)
    _option(parser, "result", "HOW", "only episodes that ended so: win, draw, …", nargs="+", default=[])


def _add_place(parser: ArgumentParser) -> None:
    text = "a run, or a file of gamespiel eval --save_games"
    parser.add_argument("place", type=Path, metavar="RUN_OR_FILE", help=text)


def add_sft_options(parser: ArgumentParser) -> None:
    """Adds the options of ``gamespiel sft``."""
    _add_config_options(parser)
    _path(parser, "data", "FILE.jsonl", "rows of `gamespiel export`", nargs="+", required=True)
    _option(parser, "output_dir", "DIR", "the same as --run.output_dir")
    _option(parser, "epochs", "N", "passes over the rows [2]", float, default=2.0)
    _option(parser, "learning_rate", "X", "falls linearly to 0 [2e-4]", float, default=2e-4)
    _number(parser, "batch_size", 32, "rows of an update")


def add_merge_options(parser: ArgumentParser) -> None:
    """Adds the options of ``gamespiel merge``."""
    parser.add_argument("place", type=Path, metavar="RUN", help="a run, a checkpoint, RUN@STEP or RUN@best")
    _path(parser, "output", "FOLDER", "a new folder", required=True)
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float16", "float32"))
    _option(parser, "tolerance", "NATS", "the most that a log-probability may change", float)
    _option(parser, "licence", "NAME", "the base model's, if its card is not here")


def add_vllm_command_options(parser: ArgumentParser) -> None:
    """Adds the options of ``gamespiel vllm-command``."""
    _add_config_options(parser)
    _path(parser, "checkpoint", "RUN", "a run, whose configuration holds")
    invariant = "numbers that do not depend on what shares a batch (NVIDIA GPUs; slower)"
    _flag(parser, "batch_invariant", invariant)


def add_runs_options(parser: ArgumentParser) -> None:
    """Adds the options of ``gamespiel runs``."""
    text = "runs, or folders of runs [runs]; diff RUN RUN: the keys and results in which two differ"
    parser.add_argument("places", nargs="*", metavar="FOLDER", help=text)
    _flag(parser, "json", "print JSON")


def add_plot_options(parser: ArgumentParser) -> None:
    """Adds the options of ``gamespiel plot``."""
    text = "runs; those of several seeds are one curve"
    parser.add_argument("places", type=Path, nargs="+", metavar="RUN", help=text)
    _path(parser, "output", "FILE", "PNG and SVG [curves]", default=Path("curves.png"))


def add_leaderboard_options(parser: ArgumentParser) -> None:
    """Adds the options of ``gamespiel leaderboard``."""
    board = "the board, .json or .json.gz: it is made, or gone on with"
    _path(parser, "board", "FILE", board, required=True)
    agents = (
        "random, first, mcts or ismcts (whole, /N or :SIMS[xROLLOUTS]), a run, model:PRESET, "
        f"{USAGE}; LABEL=AGENT names one"
    )
    _option(parser, "agents", "AGENT", agents, nargs="+", default=[])
    _flag(parser, "meetings", "these agents also meet each other, in the games for two")
    _number(parser, "rounds", 1, "deals of each task")
    _option(parser, "track", "NAME", "masked, unmasked or unlisted [masked]", default="masked")
    deals = "deals named by a public hash of a date [fixed]"
    _option(parser, "deals", "DATE:HASH", deals, default="fixed")
    _option(parser, "seconds", "N", "begin nothing after so many", float)
    _option(parser, "games", "N", "begin nothing after so many episodes", int)
    _number(parser, "processes", 1, "processes that play")
    _path(parser, "html", "FILE.html", "write the board as a page too")
    _add_import_option(parser)
    group = parser.add_argument_group(f"agents as {USAGE}")
    prices = "dollars per million tokens, which tables then show"
    _option(group, "prices", "NAME=IN:OUT", prices, nargs="+", default=[])
    _option(group, "concurrency", "N", "episodes at once [8]", int)
    _option(group, "temperature", "T", "[the endpoint's own]", float)
    _option(group, "max_new_tokens", "N", "tokens that cut a reply [the endpoint's own]", int)
    _option(group, "request_s", "SECONDS", "a reply may pause so long [120]", float)


def add_verify_options(parser: ArgumentParser) -> None:
    """Adds the options of ``gamespiel verify``."""
    parser.add_argument("board", type=Path, metavar="FILE", help="a file of gamespiel leaderboard")
    _flag(parser, "quick", "do not search again: moves of searches only have to be legal")
    _number(parser, "processes", 1, "processes that play")
    text = "models that play a share of their deals again: a run's folder, or model:PRESET"
    _option(parser, "replay_models", "NAME=AGENT", text, nargs="+", default=[])
    _number(parser, "share", 0.1, "the share of a model's deals that it plays again", "SHARE")
    _option(parser, "seed", "N", "draws these deals; one that nobody knew if it is not given", int)
