"""Measures how often intervals of comparisons are wrong: `python -m benchmarks.coverage`.

Two agents are simulated whose true difference is known, and their deals go through the functions of a
comparison and of a board. A family, the intervals of all games and of their mean, is wrong if one of its
members is. At most 5% of families may be. Student's intervals of the same deals stand beside them.

Then boards of equals, whose agents enter one after the other, and are read after each: one is wrong if some
difference is. And ratings of agents of a known strength, from matches that the ratings' own model draws.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from benchmarks.ending import end, machine, make_parser, parse
from gamespiel.measure.board.benchmark import SCALES
from gamespiel.measure.differences import (
    Column,
    compare_all,
    finish_family,
    share_by_entry,
)
from gamespiel.measure.ratings import ELO, rate_games

Array = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, int]], Array]


def win_rarely(chance: float) -> Draw:
    """Returns deals of two seats, each of which is won with this probability."""
    return lambda generator, shape: (generator.random((*shape, 2)) < chance).mean(axis=-1)


def differ(values: Sequence[float], chances: Sequence[float]) -> Draw:
    """Returns deals with these values; the seats of a deal are alike."""
    return lambda generator, shape: generator.choice(np.asarray(values), shape, p=chances)


MEANS = np.linspace(0.1, 0.9, 22)


def win_apart(generator: np.random.Generator, shape: tuple[int, int]) -> Array:
    """Returns deals of games that are won with ``MEANS``."""
    return (generator.random(shape) < MEANS[:, None]).astype(float)


CASES: dict[str, tuple[Draw, float | Array, int, tuple[int, ...]]] = {
    "2% of seats are won": (win_rarely(0.02), 0.02, 8, (100,)),
    "5% of seats are won": (win_rarely(0.05), 0.05, 8, (100,)),
    "1% of seats are won": (win_rarely(0.01), 0.01, 1, (300,)),
    "0 with 90%, 1 with 10%": (differ((0.0, 1.0), (0.9, 0.1)), 0.1, 1, (2, 5, 10, 30, 300)),
    "-1 with 10%, 0.1 with 90%": (differ((-1.0, 0.1), (0.1, 0.9)), -0.01, 1, (10, 30, 300)),
    "ties with 90%": (differ((-1.0, 0.0, 1.0), (0.05, 0.9, 0.05)), 0.0, 4, (10, 100)),
    "even": (differ((-1.0, 0.0, 1.0), (0.25, 0.5, 0.25)), 0.0, 4, (30, 300)),
    "means from 0.1 to 0.9": (win_apart, MEANS, 22, (3, 30)),
}
"""The draw, its mean or those of the games, the number of games, and the numbers of deals."""


def simulate(
    draw: Draw, mean: float | Array, games: int, deals: int, families: int, seed: int
) -> dict[str, float]:
    """Returns the shares of families that are wrong, and widths over that of Student's interval."""
    generator, names = np.random.default_rng([seed, games, deals]), ("first", "second")
    wrong = {"planned": 0, "looked at": 0, "Student": 0}
    widths: dict[str, list[float]] = {"planned": [], "looked at": []}
    truths = np.broadcast_to(mean, games)
    family_truths = [*truths, truths.mean()] if games > 1 else truths
    still = Column((0.0,) * deals, (0.0,) * deals, (0.0, 0.0))
    for _ in range(families):
        values = draw(generator, (games, deals))
        columns = {}
        for game, row in enumerate(values):
            scores = tuple(row.tolist())
            columns[f"game {game}"] = {"first": Column(scores, scores, (-1.0, 1.0)), "second": still}
        error = values.std(axis=1, ddof=1) / math.sqrt(deals)
        half = error * stdtrit(deals - 1, 1 - 0.025 / len(family_truths))
        wrong["Student"] += bool((abs(values.mean(axis=1) - truths) > half + 1e-12).any())
        for name, anytime in (("planned", False), ("looked at", True)):
            family = compare_all(names, columns, detect=0.05, anytime=anytime)
            wrong[name] += not all(
                one.low <= true <= one.high for one, true in zip(family, family_truths, strict=True)
            )
            if half[0] > 1e-9:
                widths[name].append((family[0].high - family[0].low) / min(2.0, 2 * float(half[0])))
    shares = {f"{name}, wrong": count / families for name, count in wrong.items()}
    return shares | {f"{name}, width": float(np.mean(ratios)) for name, ratios in widths.items() if ratios}


BOARDS = ((12, 30), (12, 300))
"""Agents and deals."""

RATINGS = (-300.0, 0.0, 600.0, 1000.0)
RATED_DEALS = (2, 10)
MOST_RATED = 60
"""The true ratings, the deals of each game, and the most boards: each is resampled."""


def simulate_board(agents: int, deals: int, boards: int, seed: int) -> dict[str, float]:
    """Returns the share of boards of equals with a difference that is wrong.

    In a deal everybody wins the two seats with the same chances, which its cards decide. Readings before an
    agent entered are not calculated: its entry does not change them.
    """
    generator, wrong = np.random.default_rng([seed, agents, deals]), 0
    names = [f"agent {place}" for place in range(1, agents + 1)]
    shares = [share_by_entry(place) for first in range(1, agents) for place in range(first + 1, agents + 1)]
    for _ in range(boards):
        chances = generator.random((deals, 1, 2))
        values = (generator.random((deals, agents, 2)) < chances).mean(axis=-1).T.tolist()
        columns = {
            name: Column(tuple(row), tuple(row), (0.0, 1.0)) for name, row in zip(names, values, strict=True)
        }
        pairs = compare_all(names, {"game": columns}, detect=0.05, anytime=True)
        wrong += any(one.clear for one in finish_family(pairs, anytime=True, shares=shares))
    return {"wrong": wrong / boards}


def simulate_rating(points: float, deals: int, boards: int, seed: int) -> dict[str, float]:
    """Returns an agent's mean rating, and the shares of its intervals that are wrong and without an end."""
    generator, scales = np.random.default_rng([seed, int(points) + 1000, deals]), list(SCALES.values())
    rated = []
    for number in range(boards):
        scores = []
        for scale in scales:
            half = (points - np.asarray(scale.anchors) + scale.bias) / (2 * ELO)
            total = np.exp(half) + np.exp(-half) + scale.ties
            drawn = generator.random((deals, 2, len(half)))
            won, tied = drawn < np.exp(half) / total, drawn < (np.exp(half) + scale.ties) / total
            scores.append((won + (tied & ~won) / 2).sum(axis=1))
        counts = [np.full(sums.shape, 2.0) for sums in scores]
        rated.append(rate_games(scales, scores, counts, number))
    wrong = [
        not (-math.inf if one.low is None else one.low)
        <= points
        <= (math.inf if one.high is None else one.high)
        for one in rated
    ]
    return {
        "mean": float(np.mean([one.points for one in rated])),
        "wrong": sum(wrong) / boards,
        "without an end": sum(one.low is None or one.high is None for one in rated) / boards,
    }


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Runs the benchmark; returns its results."""
    parser = make_parser("coverage", __doc__)
    parser.add_argument("--families", type=int, default=400, help="families that are simulated of each case")
    parser.add_argument("--seed", type=int, default=0, help="the seed (default: 0)")
    options = parse(parser, argv)
    cases = []
    for name, (draw, mean, games, sizes) in CASES.items():
        for deals in sizes:
            figures = simulate(draw, mean, games, deals, options.families, options.seed)
            cases.append({"differences": name, "games": games, "deals": deals, **figures})
            shares = ", ".join(f"{key} {value:.3f}" for key, value in figures.items())
            print(f"{name}, {games} x {deals}: {shares}", flush=True)
    for agents, deals in BOARDS:
        figures = simulate_board(agents, deals, options.families, options.seed)
        cases.append({"board of equals": agents, "deals": deals, **figures})
        print(f"{agents} equals, {deals} deals: wrong {figures['wrong']:.3f}", flush=True)
    for points in RATINGS:
        for deals in RATED_DEALS:
            figures = simulate_rating(points, deals, min(options.families, MOST_RATED), options.seed)
            cases.append({"rating": points, "deals": deals, **figures})
            shares = ", ".join(f"{key} {value:.3f}" for key, value in figures.items())
            print(f"rating {points:.0f}, {deals} deals: {shares}", flush=True)
    results = {
        "benchmark": "coverage", "families": options.families, "seed": options.seed, "cases": cases,
        "machine": machine(),
    }  # fmt: skip
    return end(results, options.out)


if __name__ == "__main__":
    main()
