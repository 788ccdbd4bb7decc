"""The time of a training step on one rank and on several, and whether they learn the same.

``python -m benchmarks.scale`` launches ``benchmarks.scale_rank`` under ``torchrun``, each number of ranks on
this machine alone. benchmarks/README.md describes the measures.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.ending import end, parse
from benchmarks.machine import machine

ROOT = Path(__file__).parents[1]

COMMON = {"run.device": "cpu", "run.num_threads": "1", "run.seed": "0"}
LEARNED = {
    "env.task_id": "null", "env.game": "kuhn_poker", "ppo.batch_size": "64", "ppo.mini_batch_size": "64",
    "ppo.gradient_accumulation_steps": "1", "ppo.num_minibatches": "0", "ppo.minibatch_unit": "turn",
    "ppo.ppo_epochs": "5", "ppo.lam": "0.95", "ppo.ent_coef": "0.02",
    "ppo.init_kl_coef": "0.01", "ppo.adaptive_kl": "true", "ppo.target_kl": "0.7",
    "ppo.kl_horizon": "20000", "ppo.num_train_steps": "24", "model.reading": "padded",
}  # fmt: skip
"""The run whose end is compared: Kuhn poker has 12 information states, so it is soon learned and solved.

Its settings do not follow the preset, so that results stay comparable.
"""

TOLERANCE = 0.01
"""A share so near to the seeds' range is in it: the first seed, which several ranks have, may be its end."""

GRADIENT_BYTES = 4
"""Bytes of a gradient's number on its way."""

PROJECTED = 8
"""Ranks for which the time of a step is projected."""


def launch(ranks: int, runs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns what a number of ranks found in each run (see ``benchmarks.scale_rank``)."""
    starter = (
        [] if ranks == 1 else ["torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), "-m"]
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "found.json"
        command = [sys.executable, "-m", *starter, "benchmarks.scale_rank", str(path), json.dumps(list(runs))]
        subprocess.run(command, cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=True)
        found: list[dict[str, Any]] = json.loads(path.read_text())
    return found


def measure(ranks: int, preset: str, steps: int, seeds: Sequence[int]) -> tuple[dict[str, Any], list[float]]:
    """Returns the medians of a step's figures, and the share of best response that each seed reaches.

    The first step, which also warms up, is left out. ``busy_seconds`` are the processor's of the rank that
    has most of them: what a step would take if each rank had a core to itself and messages took no time.
    """
    timed = {"preset": preset, "changes": COMMON | {"ppo.num_train_steps": str(steps + 1)}, "solve": False}
    learning = [
        {"preset": "tiny", "changes": COMMON | LEARNED | {"run.seed": str(seed)}, "solve": True}
        for seed in seeds
    ]
    found, *learned = launch(ranks, [timed, *learning])
    first = found["steps"][0][1:]
    busiest = [max(own[at]["cpu_seconds"] for own in found["steps"]) for at in range(1, steps + 1)]
    row = {
        "ranks": ranks,
        **{
            name: statistics.median(step.get(name, 0.0) for step in first)
            for name in ("seconds", "collect_seconds", "update_seconds", "exchange_seconds")
        },
        "busy_seconds": statistics.median(busiest),
        "decisions_per_step": found["decisions"] / (steps + 1),
        "gradient_bytes": GRADIENT_BYTES * found["gradients"],
    }
    return row, [each["share"] for each in learned]


def compare(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows with their ratios to the first one, which has one rank."""
    alone = rows[0]
    return [
        {
            **row,
            "speedup": alone["seconds"] / row["seconds"],
            "busy_speedup": alone["busy_seconds"] / row["busy_seconds"],
            "exchange_share": row["exchange_seconds"] / row["seconds"],
        }
        for row in rows
    ]


def project(one: float, two: float, ranks: int = PROJECTED) -> dict[str, float] | None:
    """Returns the time of a step on more ranks, from those on one and on two, by Amdahl's law.

    A step is a part that ranks share and one that each has to do: one = shared + own, and two = shared / 2 +
    own. So shared = 2 (one - two). Messages are not in it: their time depends on the network. It is None if
    two ranks took less than half the time of one, or more than all of it: other work was in the measurement.

    Args:
        one: Seconds of a step on one rank, without messages.
        two: Those on two ranks.
        ranks: The number of ranks to project to.
    """
    if not one / 2 <= two <= one:
        return None
    shared = 2 * (one - two)
    seconds = shared / ranks + one - shared
    return {"ranks": ranks, "seconds": seconds, "speedup": one / seconds, "shared": shared / one}


def compare_shares(alone: Sequence[float], several: Sequence[float]) -> dict[str, Any]:
    """Returns the shares of best response of one rank and of several, and whether these are in the range."""
    low, high = min(alone) - TOLERANCE, max(alone) + TOLERANCE
    return {
        "of_one_rank": list(alone), "of_several": list(several), "tolerance": TOLERANCE,
        "within": all(low <= share <= high for share in several),
    }  # fmt: skip


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Measures, prints and writes the results; returns them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--preset", default="tiny", help="the run whose steps are timed [tiny]")
    parser.add_argument(
        "--ranks", type=int, nargs="+", default=[1, 2], help="numbers of ranks, 1 first [1 2]"
    )
    parser.add_argument("--steps", type=int, default=3, help="timed steps of each [3]")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2], help="seeds that learn [0 1 2]")
    given = parse(parser, argv)
    if given.ranks[:1] != [1]:
        parser.error("--ranks begins with 1, with which the others are compared")
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    rows, shares = list[dict[str, Any]](), list[list[float]]()
    for ranks in given.ranks:
        row, own = measure(ranks, given.preset, given.steps, given.seeds[: None if ranks == 1 else 1])
        rows.append(row)
        shares.append(own)
    busy = {row["ranks"]: row["busy_seconds"] for row in rows}
    several = [share for own in shares[1:] for share in own]
    results = {
        "benchmark": "scale",
        "machine": machine(),
        "load_before": load,
        "preset": given.preset,
        "steps": given.steps,
        "rows": compare(rows),
        "projection": project(busy[1], busy[2]) if 2 in busy else None,
        "learning": compare_shares(shares[0], several) if several else None,
    }
    return end(results, given.out)


if __name__ == "__main__":
    main()
