"""Measures what learning a small game takes, with its tree and without: `python -m benchmarks.advantages`.

Presets learn each game against a uniformly random opponent, one after the other in one process, in one
thread. By default they are `tiny` (`ppo.advantages: exact`) and `tiny-gae`. Of each run it notes the
decisions, the tokens that the model read (those of the tree's prompts too) and the CPU seconds of training
until its share of best response, computed exactly at temperature 1, first reaches 85%, 95% and 97.5%. `exact`
knows the rules and the opponent, which `gae` does not.

Runs that are in the file already stay, unless they are of the same game, preset and seed. Ends in one line of
JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import torch
from stable_baselines3.common.callbacks import BaseCallback

from benchmarks.ending import RESULTS, Row, end, join_rows, machine, make_parser, parse, rows_there
from game_gym import exact
from gamespiel.assembly import make_algorithm
from gamespiel.config import resolve

GAMES = ("kuhn_poker", "leduc_poker", "liars_dice", "tic_tac_toe")
PRESETS = ("tiny", "tiny-gae")
THRESHOLDS = (0.85, 0.95, 0.975)


class Progress(BaseCallback):
    """Notes [decisions, tokens read, CPU seconds, share] before every ``every``-th step, and at the end."""

    def __init__(self, name: str, share: Any, every: int) -> None:
        super().__init__()
        self.name, self.share, self.every = name, share, every
        self.points: list[list[float]] = []
        self._seconds, self._tokens = 0.0, 0  # of evaluations

    def _on_training_start(self) -> None:
        self._started = time.process_time()

    def _on_rollout_start(self) -> None:
        if self.model.step % self.every == 0:  # type: ignore[attr-defined]
            self._evaluate()

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        self._evaluate()

    def _evaluate(self) -> None:
        begun, policy, before = time.process_time(), self.model.policy, self._count_tokens()
        share = self.share(policy.distribution)
        seconds = begun - self._started - self._seconds
        self.points.append(
            [self.model.num_timesteps, before - self._tokens, round(seconds, 1), round(share, 4)]
        )
        print(f"{self.name}: {self.points[-1]}", flush=True)
        self._seconds += time.process_time() - begun
        self._tokens += self._count_tokens() - before

    def _count_tokens(self) -> int:
        policy: Any = self.model.policy
        return int(policy.sampler.tokens_read + policy.engine.tokens_read)


def learn(game: str, preset: str, seed: int, *, steps: int | None, points: int) -> Row:
    """Trains a preset on a game; returns when it reached which share, which is computed so many times."""
    settings = {"env.task_id": "null", "env.game": game, "run.seed": str(seed), "run.device": "cpu"}
    if resolve(preset).ppo.advantages == "auto":
        settings["ppo.advantages"] = "exact"  # also in a tree that is too large for "auto"
    if steps is not None:
        settings["ppo.num_train_steps"] = str(steps)
    model = make_algorithm(resolve(preset, overrides=settings.items()))
    variant = exact.find_variant(game=game)

    def share(policy: exact.Policy) -> float:
        return exact.evaluate(variant, policy, rules=False).share

    assert model.total_steps is not None
    progress = Progress(f"{game}, {preset}, seed {seed}", share, max(1, model.total_steps // points))
    model.learn(callback=progress, log_interval=None)
    reached = {
        f"{threshold:g}": next((point[:3] for point in progress.points if point[3] >= threshold), None)
        for threshold in THRESHOLDS
    }
    row = {"game": game, "preset": preset, "seed": seed, "machine": machine()}
    return {**row, "reached": reached, "points": progress.points}


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    parser = make_parser("advantages", __doc__)
    parser.add_argument("--games", nargs="+", default=GAMES, metavar="GAME", help="which games [all four]")
    parser.add_argument(
        "--presets", nargs="+", default=PRESETS, metavar="NAME", help=f"[{' '.join(PRESETS)}]"
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], metavar="SEED", help="[0 1 2]")
    parser.add_argument("--steps", type=int, help="steps of each run [the preset's]")
    parser.add_argument("--points", type=int, default=32, help="exact evaluations of each run [32]")
    arguments = parse(parser, argv)
    if arguments.out == RESULTS and arguments.steps is not None:
        parser.error("--keep keeps whole runs: leave out --steps")
    torch.set_num_threads(1)
    rows = [
        learn(game, preset, seed, steps=arguments.steps, points=arguments.points)
        for game in arguments.games
        for preset in arguments.presets
        for seed in arguments.seeds
    ]
    before = rows_there(arguments.out, "advantages")
    results = {
        "benchmark": "advantages",
        "columns": ["decisions", "tokens", "CPU s", "share"],
        "rows": join_rows(before, rows, lambda row: (row["game"], row["preset"], row["seed"])),
    }
    return end(results, arguments.out)


if __name__ == "__main__":
    main()
