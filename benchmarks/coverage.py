"""Measures how often the intervals of comparisons are wrong: `python -m benchmarks.coverage`.

Comparisons are simulated: differences of score deal by deal, whose true mean is known. An interval is wrong
if it leaves that mean out. Four ways are measured on the same 10,000 comparisons of each kind: Student's
interval, looked at once at the end or after every deal from the tenth on, and the confidence sequence, looked
at once at the end or after every deal.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.ending import Row, end, parse
from benchmarks.machine import machine
from gamespiel.statistics.means import student_quantile
from gamespiel.statistics.sequences import log_capital

#: Differences of score of one deal, with their probabilities.
KINDS: dict[str, dict[float, float]] = {
    # Two seats, each won or lost by one of equal players.
    "even": {-1.0: 0.25, 0.0: 0.5, 1.0: 0.25},
    # The second is better by 0.1: the mean of two seats of 45% against 55%.
    "better by 0.1": {-1.0: 0.2, 0.0: 0.5, 1.0: 0.3},
    # Deals that nearly always end alike, as those of two checkpoints of a run.
    "rare": {-0.5: 0.02, 0.0: 0.96, 0.5: 0.02},
    # Many small losses, few great wins.
    "skewed": {-0.1: 0.9, 0.9: 0.1},
}

#: The first deal after which somebody looks.
FIRST = 10

#: Comparisons that are computed together.
TOGETHER = 500

Array = npt.NDArray[np.float64]


def count_wrong(values: Array, mean: float) -> dict[str, Array]:
    """Returns per way whether each comparison's intervals are wrong: bool, shape (comparisons,).

    Args:
        values: Differences in [-1, 1], shape (comparisons, deals).
        mean: Their true mean.
    """
    deals = values.shape[1]
    numbers = np.arange(1, deals + 1)
    means = values.cumsum(axis=1) / numbers
    squares = (values**2).cumsum(axis=1) / numbers
    variances = np.maximum(squares - means**2, 0) * numbers / np.maximum(numbers - 1, 1)
    quantiles = np.array([student_quantile(0.975, max(1, n - 1)) for n in numbers])
    # An interval of equal values is not Student's; see gamespiel/statistics/means.py.
    equal = 1 - 0.025 ** (1 / numbers)
    half = np.where(variances > 1e-12, quantiles * np.sqrt(variances / numbers), (1 + np.abs(means)) * equal)
    student = np.abs(means - mean) > half
    rich = log_capital((values + 1) / 2, (mean + 1) / 2) >= math.log(20)
    ever = rich.any(axis=1)
    return {
        "student, once": student[:, -1],
        "student, after every deal": student[:, FIRST - 1 :].any(axis=1),
        "sequence, once": rich[:, -1],
        "sequence, after every deal": ever,
    }


def measured(kind: str, comparisons: int, deals: int, seed: int) -> Row:
    """Returns the share of wrong comparisons of one kind, by way."""
    chances = KINDS[kind]
    mean = sum(value * chance for value, chance in chances.items())
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, list(KINDS).index(kind)])))
    wrong: dict[str, int] = {}
    for start in range(0, comparisons, TOGETHER):
        size = min(TOGETHER, comparisons - start), deals
        values = generator.choice(list(chances), size, p=list(chances.values()))
        for way, found in count_wrong(values, mean).items():
            wrong[way] = wrong.get(way, 0) + int(found.sum())
    shares = {way: count / comparisons for way, count in wrong.items()}
    return {"kind": kind, "mean": mean, "comparisons": comparisons, "deals": deals, "wrong": shares}


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Runs the benchmark; returns its results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=10_000, help="of each kind [10000]")
    parser.add_argument("--deals", type=int, default=500, help="of each comparison [500]")
    parser.add_argument("--seed", type=int, default=0, help="[0]")
    given = parse(parser, argv)
    started = time.perf_counter()
    rows = [measured(kind, given.comparisons, given.deals, given.seed) for kind in KINDS]
    seconds = round(time.perf_counter() - started, 1)
    for row in rows:
        shares = ", ".join(f"{way} {share:.2%}" for way, share in row["wrong"].items())
        print(f"{row['kind']}: {shares}")
    results = {"benchmark": "coverage", "seed": given.seed, "rows": rows}
    return end(results | {"seconds": seconds, "machine": machine()}, given.out)


if __name__ == "__main__":
    main()
