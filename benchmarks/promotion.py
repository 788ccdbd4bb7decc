"""Measures how often luck promotes: `python -m benchmarks.promotion`.

A policy whose success rate never changes plays a stage of `task_gym.samplers.Stages` with a threshold of 0.70
and a window of 100. How often is it promoted within so many episodes, by either rule, and after how many
episodes? The rules are tested after every episode, so a policy below the threshold is promoted by the first
window that is lucky enough.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.ending import end, machine, make_parser, parse
from task_gym.samplers.stages import PROMOTE, THRESHOLD
from task_gym.stats import wilson

WINDOW = 100

#: Success rates of the policy: the threshold less 0.10 … plus 0.15.
RATES = (0.60, 0.65, 0.70, 0.75, 0.80, 0.85)

#: Episodes within which a promotion is looked for.
WITHIN = (100, 1_000, 5_000)

#: Runs that are simulated together.
_TOGETHER = 500


def needed(rule: str, threshold: float = THRESHOLD, window: int = WINDOW) -> int:
    """Returns the successes in a full window with which the rule promotes."""
    return next(
        count
        for count in range(window + 1)
        if (wilson(count, window).low if rule == "confidence" else count / window) >= threshold
    )


def promotions(rate: float, rule: str, runs: int, episodes: int, seed: int) -> NDArray[np.int64]:
    """Returns after how many episodes each run is promoted, int64 (runs,); ``episodes + 1`` for never."""
    generator = np.random.default_rng([seed, round(1000 * rate)])
    batches = []
    for first in range(0, runs, _TOGETHER):
        size = min(_TOGETHER, runs - first)
        successes = generator.random((size, episodes), dtype=np.float32) < rate
        sums = np.cumsum(successes, axis=1, dtype=np.int32)
        sums[:, WINDOW:] -= sums[:, :-WINDOW].copy()
        enough = sums[:, WINDOW - 1 :] >= needed(rule)
        batches.append(np.where(enough.any(axis=1), enough.argmax(axis=1) + WINDOW, episodes + 1))
    return np.concatenate(batches)


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Runs the benchmark; returns its results."""
    parser = make_parser("promotion", __doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="runs per rate [10000]")
    parser.add_argument("--seed", type=int, default=0, help="[0]")
    arguments = parse(parser, argv)
    longest = max(WITHIN)
    rows = []
    for rule in PROMOTE:
        for rate in RATES:
            after = promotions(rate, rule, arguments.runs, longest, arguments.seed)
            median = float(np.median(after))
            row = {
                "rule": rule,
                "rate": rate,
                "promoted": {
                    str(within): wilson(int((after <= within).sum()), arguments.runs) for within in WITHIN
                },
                "median_episodes": median if median <= longest else None,
            }
            rows.append(row)
            shares = ", ".join(f"{row['promoted'][str(n)].mean:.1%} within {n}" for n in WITHIN)
            print(f"{rule} at {rate:.2f}: {shares}; median {row['median_episodes']}", flush=True)
    results = {
        "benchmark": "promotion", "threshold": THRESHOLD, "window": WINDOW, "runs": arguments.runs,
        "seed": arguments.seed, "needed": {rule: needed(rule) for rule in PROMOTE}, "rows": rows,
        "machine": machine(),
    }  # fmt: skip
    return end(results, arguments.out)


if __name__ == "__main__":
    main()
