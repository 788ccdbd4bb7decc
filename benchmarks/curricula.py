"""Compares curricula on five games: `python -m benchmarks.curricula`.

The embedded model learns five games against a random opponent with the same number of decisions. Each
curriculum draws the games in its own way: all equally often, or one after the other. The measure is the score
on held-out seeds of all games. `--samplers` and `--seeds` measure a part, and with `--keep` or `--out` the
part takes the place of the same runs in the results that are there.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import io
import json
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from rich.console import Console
from stable_baselines3.common.logger import Logger

from benchmarks.ending import Row, end, join_rows, machine, make_parser, parse, rows_there
from gamespiel.assembly import make_algorithm
from gamespiel.config import Config, resolve
from gamespiel.measure.episodes import measure_played, play_policy
from task_gym.stats import mean_interval

GAMES: Mapping[str, int] = {
    "leduc_poker": 200_000_000,
    "phantom_ttt": 1_600_000_000,
    "goofspiel": 0,
    "liars_dice": 100_000_000,
    "blackjack": 1_500_000_000,
}
"""Task ids of the games, in the order of the stages."""

THRESHOLD = 0.55
"""The threshold of each stage but the last, for the lower end of the interval over 400 episodes."""

SAMPLERS = ("uniform", "stages")

DECISIONS = 20_000


def configured(sampler: str, seed: int) -> Config:
    """Returns the configuration of a run: that of the preset `tiny-curriculum`, with five games."""
    stages: list[dict[str, Any]] = [
        {"name": game, "task_ids": [task], "opponent": "random"} for game, task in GAMES.items()
    ]
    if sampler == "stages":
        for stage in stages[:-1]:
            stage["threshold"] = THRESHOLD
    overrides = {
        "env.task_ids": json.dumps(list(GAMES.values())),
        "model.reading": "shared",
        "curriculum.sampler": sampler,
        "curriculum.stages": json.dumps(stages),
        "curriculum.failure_replay_prob": "0",
        "ppo.lr_schedule": "constant",
        "ppo.ent_schedule": "constant",
        "ppo.learning_rate": "1e-3",
        "run.seed": str(seed),
        "run.device": "cpu",
    }
    return resolve("tiny-curriculum", overrides=overrides.items())


def learned(sampler: str, seed: int, decisions: int, episodes: int) -> Row:
    """Trains, and returns the scores by game on held-out seeds."""
    config, quiet = configured(sampler, seed), Console(file=io.StringIO())
    started = time.perf_counter()
    model = make_algorithm(config)
    model.set_logger(Logger(None, []))
    model.learn(total_timesteps=decisions)
    trained = time.perf_counter() - started
    measures = measure_played(config, model.policy, play_policy(config, model.policy, episodes, quiet))
    assert model.starts is not None
    row: Row = {
        "sampler": sampler,
        "seed": seed,
        "asked": {"decisions": decisions, "episodes_per_seat": episodes},
        "decisions": model.num_timesteps,
        "seconds": round(trained, 1),
        "scores": {game: _finite(measures[game].score) for game in GAMES if game in measures},
        "curriculum": model.starts.metrics(),
    }
    # Each game counts the same, whatever its share of the episodes that were drawn.
    row["score"] = sum(score[0] for score in row["scores"].values()) / max(1, len(row["scores"]))
    print(f"{sampler}, seed {seed}: {row['score']:.3f}", flush=True)
    return row | {"machine": machine()}


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the mean score of each sampler over the seeds, and its difference from uniform by seed."""
    scores: dict[str, dict[int, float]] = {}
    for row in rows:
        scores.setdefault(row["sampler"], {})[row["seed"]] = row["score"]
    intervals: dict[str, Any] = {}
    for sampler, seed_scores in scores.items():
        even = scores.get("uniform", {})
        differences = [score - even[seed] for seed, score in seed_scores.items() if seed in even]
        intervals[sampler] = {
            "score": _interval(list(seed_scores.values())),
            "against_uniform": _interval(differences) if sampler != "uniform" and differences else None,
        }
    return intervals


def _interval(values: Sequence[float]) -> list[float | None]:
    """Returns mean and 95% interval; one value has no interval."""
    return _finite(mean_interval(values))


def _finite(interval: Sequence[float]) -> list[float | None]:
    """Returns an interval as plain data for JSON."""
    return [value if math.isfinite(value) else None for value in interval]


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Runs the benchmark; returns its results."""
    parser = make_parser("curricula", __doc__)
    parser.add_argument("--samplers", nargs="+", choices=SAMPLERS, default=SAMPLERS, metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], metavar="N", help="[0 1 2]")
    parser.add_argument("--decisions", type=int, default=DECISIONS, help=f"per run [{DECISIONS}]")
    parser.add_argument("--episodes", type=int, default=500, help="held-out episodes per seat [500]")
    parser.add_argument("--threads", type=int, help="CPU threads [torch decides]")
    arguments = parse(parser, argv)
    if arguments.threads is not None:
        torch.set_num_threads(arguments.threads)
    before = rows_there(arguments.out, "curricula")
    new = [
        learned(sampler, seed, arguments.decisions, arguments.episodes)
        for seed in arguments.seeds
        for sampler in arguments.samplers
    ]
    alike = (row for row in before if row.get("asked") == new[0]["asked"])  # as much was asked of them
    rows = join_rows(alike, new, lambda row: (row["seed"], row["sampler"]))
    return end({"benchmark": "curricula", "summary": summary(rows), "rows": rows}, arguments.out)


if __name__ == "__main__":
    main()
