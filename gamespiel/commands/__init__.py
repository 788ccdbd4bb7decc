"""The commands: what each does with the options that were given."""

from gamespiel.commands.evaluating import run_eval, run_exploit, run_leaderboard, run_verify
from gamespiel.commands.given import Overrides
from gamespiel.commands.showing import (
    run_games,
    run_play,
    run_plot,
    run_replay,
    run_runs,
    run_serve,
    run_trace,
    run_watch,
)
from gamespiel.commands.training import (
    run_configure,
    run_export,
    run_merge,
    run_schema,
    run_sft,
    run_train,
    run_vllm_command,
)

__all__ = [
    "Overrides",
    "run_configure",
    "run_eval",
    "run_exploit",
    "run_export",
    "run_games",
    "run_leaderboard",
    "run_merge",
    "run_play",
    "run_plot",
    "run_replay",
    "run_runs",
    "run_schema",
    "run_serve",
    "run_sft",
    "run_trace",
    "run_train",
    "run_verify",
    "run_vllm_command",
    "run_watch",
]
