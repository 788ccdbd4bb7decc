"""Draws how exploitable self-play leaves a policy: `python -m benchmarks.self_play RUN...`.

Trains nothing: it reads the exact evaluations (`run.exact_every`) of finished runs of one game with
`env.opponent: self`, such as `python train.py --preset tiny-selfplay --seed N`. Beside them are
counterfactual regret minimisation, which walks the whole game in each iteration, uniform play and, if its run
is named, a policy that was trained against a random opponent.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`. The picture is beside it.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyspiel

import gamespiel
from benchmarks.ending import end, parse
from benchmarks.machine import machine
from game_gym import exact
from game_gym.spec import Variant
from gamespiel.agents.runs.loggers import read_rows
from gamespiel.config import saved_config
from gamespiel.errors import InvalidValueError
from gamespiel.runs import METRICS

ITERATIONS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
"""Iterations of counterfactual regret minimisation that are shown."""


def variant_of(run: Path) -> Variant:
    """Returns the game of a run, as exact evaluation takes it."""
    env: Any = saved_config(run).env
    return exact.find_variant(env.task_id, env.game, env.params or None)


def exploitability_of(run: Path) -> float:
    """Returns the exploitability of a run's newest checkpoint."""
    policy = gamespiel.load_policy(run, device="cpu")
    env: Any = saved_config(run).env
    return exact.evaluate(variant_of(run), policy.distribution, rules=env.rules).exploitability


def summary(run: Path) -> dict[str, Any]:
    """Returns a run's exact evaluations: [decisions before it, seconds, exploitability], and the last one.

    Raises:
        InvalidValueError: the run was not evaluated exactly as it trained.
    """
    rows = read_rows(run / METRICS)
    curve, decisions, seconds = [], 0, 0.0
    for row in rows:
        if "eval/exploitability" in row:  # of the weights before the row's step
            curve.append([decisions, round(seconds, 1), round(row["eval/exploitability"], 4)])
        decisions, seconds = row["decisions"], row["seconds"]
    if not curve:
        raise InvalidValueError(
            f"{str(run)!r} has no exact evaluations; allowed: runs with env.opponent: self and "
            "run.exact_every"
        )
    final = round(exploitability_of(run), 4)
    curve.append([decisions, round(seconds, 1), final])
    return {"seed": saved_config(run).run.seed, "final": final, "curve": curve}


def regret_minimisation(variant: Variant, iterations: Sequence[int] = ITERATIONS) -> list[list[float]]:
    """Returns [iterations, exploitability of the average policy] of OpenSpiel's CFR."""
    solver, found = pyspiel.CFRSolver(variant.game), []
    for done in range(1, max(iterations) + 1):
        solver.evaluate_and_update_policy()
        if done in iterations:
            found.append([done, round(pyspiel.exploitability(variant.game, solver.average_policy()), 4)])
    return found


def draw(results: Mapping[str, Any], path: Path) -> Path:
    """Draws exploitability against decisions, a line per run, and against CFR's iterations."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from gamespiel.report.plots import COLOURS

    figure = Figure(figsize=(11, 4.6), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharey=True)
    for i, run in enumerate(results["runs"]):
        x, y = [row[0] for row in run["curve"]], [row[2] for row in run["curve"]]
        left.plot(x, y, color=COLOURS[0], linewidth=1.5, label=None if i else "self-play, a line per seed")
    right.plot(*zip(*results["cfr"], strict=True), color=COLOURS[1], marker=".", label="CFR, average policy")
    for axes in (left, right):
        for name in ("uniform", "against_random"):
            if results[name] is not None:
                axes.axhline(results[name], color="0.45", linewidth=0.9)
                label = {"uniform": "uniform play", "against_random": "trained against random play"}[name]
                axes.text(
                    0.995, results[name], label, transform=axes.get_yaxis_transform(), ha="right",
                    va="bottom", fontsize=8, color="0.35",
                )  # fmt: skip
        axes.set_yscale("log")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(loc="lower left", fontsize=8.5, frameon=False)
    left.set_xlabel("decisions")
    left.xaxis.set_major_formatter(lambda value, _: f"{value / 1000:,g}k" if value else "0")
    left.set_ylabel("exploitability (NashConv / 2, exact)")
    right.set_xlabel("iterations, each over the whole game")
    right.set_xscale("log")
    figure.suptitle(results["game"], fontsize=10)
    figure.savefig(path)
    return path


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.self_play",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="finished runs of one game")
    parser.add_argument("--against_random", type=Path, metavar="RUN", help="a run with a random opponent")
    given = parse(parser, argv)
    variant = variant_of(given.runs[0])
    results = {
        "benchmark": "self_play",
        "machine": machine(),
        "game": variant.spec.name,
        "runs": [summary(run) for run in given.runs],
        "uniform": round(exact.evaluate(variant, exact.uniform).exploitability, 4),
        "against_random": given.against_random and round(exploitability_of(given.against_random), 4),
        "cfr": regret_minimisation(variant),
    }
    return end(results, given.out, draw)


if __name__ == "__main__":
    main()
