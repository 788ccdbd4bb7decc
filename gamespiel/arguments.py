"""The options of each command. Nothing here is slow to import: every command reads it."""

from __future__ import annotations

import argparse
from pathlib import Path

from gamespiel.config import DEFAULT_PRESET
from gamespiel.endpoints import EPISODE_S, USAGE
from gamespiel.kinds import DECLARATIONS
from gamespiel.measure.options import EvalOptions
from gamespiel.serving.options import KINDS as SERVED
from gamespiel.serving.options import ServeOptions
from task_gym.arguments import BACKENDS
from task_gym.remote.settings import TOKEN

GAME_OPTIONS = (("game", "NAME"), ("task_id", "N"), ("opponent", "NAME"))
"""Options that set the key of that name in the ``env`` section, with what they take."""


def _add_config_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", metavar="NAME", help=f"a preset; {DEFAULT_PRESET} if nothing is given")
    parser.add_argument(
        "--config",
        nargs="+",
        action="extend",
        default=[],
        metavar="FILE",
        help="JSON or YAML; later ones win",
    )
    parser.add_argument("--seed", metavar="N", help="the same as --run.seed")
    types = " or ".join(DECLARATIONS)
    parser.add_argument("--env", metavar="TYPE", help=f"{types}, the same as --env.env_type")
    _add_task_options(parser)
    _add_import_option(parser)


def add_train_options(train: argparse.ArgumentParser) -> None:
    """Adds the options of ``gamespiel train``."""
    _add_config_options(train)
    start = train.add_mutually_exclusive_group()
    start.add_argument(
        "--resume",
        "--resume_from",
        type=Path,
        metavar="DIR",
        help="go on with a run; RUN@STEP goes back; auto: if there is one",
    )
    start.add_argument(
        "--from",
        dest="init_from",
        type=Path,
        metavar="DIR",
        help="a new run, with the keys and weights of that one",
    )
    train.add_argument("--output_dir", metavar="DIR", help="the same as --run.output_dir")
    train.add_argument(
        "--plan",
        nargs="?",
        const="",
        metavar="GIB",
        help="only say what memory it takes, and which presets fit this GPU, or one of so many GiB",
    )


def add_eval_options(evaluate: argparse.ArgumentParser) -> None:
    """Adds the options of ``gamespiel eval``."""
    _add_config_options(evaluate)
    agents = "; ".join(f"with --env {name}: {own.baselines.names}" for name, own in DECLARATIONS.items())
    player = evaluate.add_mutually_exclusive_group()
    player.add_argument("--checkpoint", type=Path, metavar="RUN", help="a run, or one of its checkpoints")
    player.add_argument("--agent", metavar="NAME", help=agents)
    player.add_argument(
        "--compare", nargs="+", metavar="AGENT", help="runs and agents: all of them play the same deals"
    )
    evaluate.add_argument(
        "--num_episodes",
        type=int,
        default=EvalOptions.num_episodes,
        metavar="N",
        help=f"episodes per seat; with --compare deals per game [{EvalOptions.num_episodes}]",
    )
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
        default=EvalOptions.decode,
        metavar="HOW",
        help="choice, or text: only such replies; with --env trace they are the output [choice]",
    )
    evaluate.add_argument(
        "--track",
        metavar="NAME",
        help="masked (choices among the legal actions), unmasked (replies, with the list of legal actions in "
        "the prompt) or unlisted (replies, without the list) [as the run was trained]",
    )
    lengths = ", ".join(
        f"{own.unit} {own.replies.max_new_tokens}" for own in DECLARATIONS.values() if own.replies
    )
    evaluate.add_argument(
        "--max_new_tokens", type=int, metavar="N", help=f"tokens that cut a reply [{lengths}]"
    )
    evaluate.add_argument("--output", type=Path, metavar="FILE.json", help="write the results there too")
    evaluate.add_argument(
        "--until_clear",
        action="store_true",
        help="with --compare: stop when it is clear who is better, after --num_episodes deals at most",
    )
    evaluate.add_argument(
        "--detect",
        type=float,
        metavar="X",
        help="with --compare: say how many deals would tell this difference in score [0.05]",
    )
    evaluate.add_argument(
        "--save_games", type=Path, metavar="FILE.jsonl", help="keep the episodes, for replay and export"
    )
    _add_endpoint_options(evaluate)


def _add_endpoint_options(evaluate: argparse.ArgumentParser) -> None:
    evaluate.add_argument(
        "--backend", choices=BACKENDS, help="affinetes: play on a server (--env.base_url) or in a container"
    )
    group = evaluate.add_argument_group(f"with --agent {USAGE}")
    limits = ", ".join(
        f"{own.unit} {EPISODE_S[own.served_as]:g}" for own in DECLARATIONS.values() if own.served_as
    )
    for name, kind, metavar, text in (
        ("concurrency", int, "N", f"episodes at once [{EvalOptions.concurrency}]"),
        ("temperature", float, "T", "[the endpoint's own]"),
        ("request_s", float, "SECONDS", f"a reply may pause so long [{EvalOptions.request_s:g}]"),
        ("episode_s", float, "SECONDS", f"one episode may take so long [{limits}]"),
    ):
        group.add_argument(f"--{name}", type=kind, metavar=metavar, help=text)
    group.add_argument(
        "--prices", type=float, nargs=2, metavar=("IN", "OUT"), help="dollars per million tokens"
    )
    group.add_argument("--whole_game", action="store_true", help="the server's own evaluate plays")
    group.add_argument(
        "--resume", action="store_true", help="play the rest of an evaluation that was stopped"
    )


def add_exploit_options(exploit: argparse.ArgumentParser) -> None:
    """Adds the options of ``gamespiel exploit``."""
    exploit.add_argument("agent", metavar="AGENT", help=f"a run, RUN@STEP, RUN@best, a baseline, or {USAGE}")
    _add_config_options(exploit)
    exploit.add_argument(
        "--methods",
        nargs="+",
        default=[],
        metavar="HOW",
        help="exact (small games, known probabilities), search, train [exact, else search and train; of an "
        "endpoint exact, else search]",
    )
    for name, value, text in (
        ("num_episodes", 200, "deals on which the exploiter is measured, from both seats"),
        ("choose_episodes", 50, "other deals, on which it is chosen; against endpoints at most num_episodes"),
        ("simulations", 100, "simulations per move of a search"),
        ("keep", 20, "lost games that are kept"),
        ("concurrency", 8, "requests at once for an endpoint's probabilities"),
        ("top_logprobs", 20, "tokens whose log-probabilities it is asked for"),
    ):
        exploit.add_argument(f"--{name}", type=int, default=value, metavar="N", help=f"{text} [{value}]")
    exploit.add_argument("--output", type=Path, metavar="FILE.json", help="write the results there")
    exploit.add_argument("--yes", action="store_true", help="do not ask before an endpoint is sent requests")


def add_serve_options(serve: argparse.ArgumentParser) -> None:
    """Adds the options of ``gamespiel serve``."""
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
    serve.add_argument(
        "--injector", default=default.injector, metavar="NAME", help="debug prints: safe or affine [safe]"
    )
    _add_import_option(serve)
    for name, kind, what in (
        ("max_sessions", int, "episodes at once"),
        ("idle_s", float, "seconds without a call after which an episode is dropped"),
        ("max_body", int, "bytes of a request"),
        ("max_sessions_per_caller", int, "episodes of one address at once"),
        ("search_s", float, "seconds of processor time for the opponents' searches of a call"),
    ):
        value = getattr(default, name) or "half of max_sessions"
        serve.add_argument(
            f"--{name}", type=kind, default=getattr(default, name), metavar="N", help=f"{what} [{value}]"
        )
    for name, what in (
        ("hosts", "names with a dot under which it may be asked without a token"),
        ("evaluate_hosts", "hosts that evaluate may ask; '*' for all"),
        ("key_hosts", "hosts that get this server's CHUTES_API_KEY, beside those of chutes.ai"),
    ):
        serve.add_argument(f"--{name}", type=_split_list, metavar="HOST,…", help=what)
    serve.add_argument(
        "--upstream_search", action="store_true", help="the opponent mcts is upstream's search in Python"
    )


def _split_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


ANSWERS = (
    ("model", "NAME", "tiny, smollm2-135m, qwen3-4b, …, a preset, OWNER/NAME of the hub, or a folder [tiny]"),
    ("card", "SIZE", "12gb, 16gb, 24gb, 80gb, cpu, or its memory in GiB [that of this machine]"),
    ("games", "NAMES", "names of games, task ids as 0-99, or traces; several with commas [leduc_poker]"),
    ("opponents", "NAMES", "an opponent, or one per stage of a curriculum, with commas [random]"),
    ("hours", "N", "the time that the run may take; none: as many steps as the preset has [none]"),
    ("output", "FILE.yaml", "the file to write [mine.yaml]"),
)
"""The answers of ``gamespiel configure``: name, what the flag takes, and help."""


def add_configure_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``gamespiel configure``."""
    parser.epilog = "What no option answers is asked in the terminal."
    for name, metavar, text in ANSWERS:
        parser.add_argument(f"--{name}", metavar=metavar, help=text)
    parser.add_argument("--yes", action="store_true", help="ask nothing: the rest has its default, in []")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")


def add_no_options(parser: argparse.ArgumentParser) -> None:
    """Adds nothing: the options of ``gamespiel schema``."""


def add_games_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``gamespiel games``."""
    _add_import_option(parser)
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
    parser.add_argument(
        "--allow_files",
        action="store_true",
        help="open files that the parameters of recorded games name: for records that you trust",
    )


def add_export_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``gamespiel export``."""
    _add_place(parser)
    parser.add_argument("--output", type=Path, metavar="FILE.jsonl", required=True, help="the file of rows")
    parser.add_argument(
        "--result", nargs="+", default=[], metavar="HOW", help="only episodes that ended so: win, draw, …"
    )


def add_sft_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``gamespiel sft``."""
    _add_config_options(parser)
    parser.add_argument(
        "--data", type=Path, nargs="+", required=True, metavar="FILE.jsonl", help="rows of `gamespiel export`"
    )
    parser.add_argument("--output_dir", metavar="DIR", help="the same as --run.output_dir")
    parser.add_argument("--epochs", type=float, default=2.0, metavar="N", help="passes over the rows [2]")
    parser.add_argument(
        "--learning_rate", type=float, default=2e-4, metavar="X", help="falls linearly to 0 [2e-4]"
    )
    parser.add_argument("--batch_size", type=int, default=32, metavar="N", help="rows of an update [32]")


def add_merge_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``gamespiel merge``."""
    parser.add_argument("place", type=Path, metavar="RUN", help="a run, a checkpoint, RUN@STEP or RUN@best")
    parser.add_argument("--output", type=Path, metavar="FOLDER", required=True, help="a new folder")
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float16", "float32"))
    parser.add_argument(
        "--tolerance", type=float, metavar="NATS", help="the most that a log-probability may change"
    )
    parser.add_argument("--gguf", type=Path, metavar="FILE.gguf", help="this file too, by llama.cpp")
    parser.add_argument("--adapters", action="store_true", help="write the adapters instead, unmerged")
    parser.add_argument(
        "--push", metavar="OWNER/NAME", help="upload the folder to this repository of the hub"
    )
    parser.add_argument("--private", action="store_true", help="if it is made, as a private one")
    parser.add_argument("--dry_run", action="store_true", help="only say what --push would upload")
    parser.add_argument("--licence", metavar="NAME", help="the base model's, if its card is not here")


def add_vllm_command_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``gamespiel vllm-command``."""
    _add_config_options(parser)
    parser.add_argument("--checkpoint", type=Path, metavar="RUN", help="a run, whose configuration holds")
    parser.add_argument(
        "--batch_invariant",
        action="store_true",
        help="numbers that do not depend on what shares a batch (NVIDIA GPUs; slower)",
    )


def add_runs_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``gamespiel runs``."""
    parser.add_argument(
        "places",
        nargs="*",
        metavar="FOLDER",
        help="runs, or folders of runs [runs]; diff RUN RUN: the keys and results in which two differ",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--bisect",
        action="store_true",
        help="with diff: play the step in which they part again, and show the first decision",
    )


def add_plot_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``gamespiel plot``."""
    parser.add_argument(
        "places", type=Path, nargs="+", metavar="RUN", help="runs; those of several seeds are one curve"
    )
    parser.add_argument(
        "--output", type=Path, metavar="FILE", default=Path("curves.png"), help="PNG and SVG [curves]"
    )


def add_leaderboard_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``gamespiel leaderboard``."""
    parser.add_argument(
        "--board",
        type=Path,
        required=True,
        metavar="FILE",
        help="the board, .json or .json.gz: it is made, or gone on with",
    )
    parser.add_argument(
        "--agents",
        nargs="+",
        default=[],
        metavar="AGENT",
        help="random, first, mcts or ismcts (whole, /N or :SIMS[xROLLOUTS]), a run, model:PRESET, "
        f"{USAGE}; LABEL=AGENT names one",
    )
    parser.add_argument("--rounds", type=int, default=1, metavar="N", help="deals of each task [1]")
    parser.add_argument(
        "--track", default="masked", metavar="NAME", help="masked, unmasked or unlisted [masked]"
    )
    parser.add_argument(
        "--deals", default="fixed", metavar="DATE:HASH", help="deals named by a public hash of a date [fixed]"
    )
    for name, kind, text in (
        ("seconds", float, "begin nothing after so many"),
        ("games", int, "begin nothing after so many episodes"),
    ):
        parser.add_argument(f"--{name}", type=kind, metavar="N", help=text)
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="processes that play [1]")
    parser.add_argument("--html", type=Path, metavar="FILE.html", help="write the board as a page too")
    _add_import_option(parser)
    group = parser.add_argument_group(f"agents as {USAGE}")
    for name, kind, metavar, text in (
        ("concurrency", int, "N", "episodes at once [8]"),
        ("temperature", float, "T", "[the endpoint's own]"),
        ("max_new_tokens", int, "N", "tokens that cut a reply [the endpoint's own]"),
        ("request_s", float, "SECONDS", "a reply may pause so long [120]"),
    ):
        group.add_argument(f"--{name}", type=kind, metavar=metavar, help=text)


def add_verify_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of ``gamespiel verify``."""
    parser.add_argument("board", type=Path, metavar="FILE", help="a file of gamespiel leaderboard")
    parser.add_argument(
        "--quick", action="store_true", help="do not search again: moves of searches only have to be legal"
    )
    parser.add_argument("--processes", type=int, default=1, metavar="N", help="processes that play [1]")


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "place", type=Path, metavar="RUN_OR_FILE", help="a run, or a file of gamespiel eval --save_games"
    )


def _add_game_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(preset=None, config=[])
    _add_task_options(parser)
    _add_import_option(parser)


def _add_import_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="MODULE",
        help="import a module of your own, which registers opponents, games or rewards; may be repeated",
    )


def _add_task_options(parser: argparse.ArgumentParser) -> None:
    for name, takes in GAME_OPTIONS:
        parser.add_argument(f"--{name}", metavar=takes, help=f"the same as --env.{name}")


def game_flags(args: argparse.Namespace) -> list[tuple[str, str | None]]:
    """Returns these options as keys with their values, or None."""
    return [(f"env.{name}", getattr(args, name)) for name, _ in GAME_OPTIONS]
