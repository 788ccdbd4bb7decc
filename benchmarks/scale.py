"""Measures a training step on one rank and on several: `python -m benchmarks.scale`.

It launches `benchmarks.scale_rank` under `torchrun`, with each number of ranks on this machine alone, a
thread for each rank. benchmarks/README.md describes the measures.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.ending import Row, end, machine, make_parser, parse

ROOT = Path(__file__).parents[1]

GRADIENT_BYTES = 4
"""Bytes of a gradient's number on its way."""


def launch_ranks(ranks: int, preset: str, steps: int) -> dict[str, Any]:
    """Returns what a number of ranks found (see ``benchmarks.scale_rank``)."""
    starter = (
        [] if ranks == 1 else ["torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks), "-m"]
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "found.json"
        command = [sys.executable, "-m", *starter, "benchmarks.scale_rank", str(path), preset, str(steps)]
        subprocess.run(command, cwd=ROOT, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=True)
        record: dict[str, Any] = json.loads(path.read_text())
    return record


def summarise(ranks: int, steps: int, record: Mapping[str, Any]) -> Row:
    """Returns the medians of a step's figures, without the first step, which also warms up.

    ``busy_seconds`` are the processor's of the rank that has most of them: what a step would take if each
    rank had a core to itself and messages took no time.
    """
    first = record["steps"][0][1:]
    busiest = [max(log[at]["cpu_seconds"] for log in record["steps"]) for at in range(1, steps + 1)]
    return {
        "ranks": ranks,
        **{
            name: statistics.median(step.get(name, 0.0) for step in first)
            for name in ("seconds", "collect_seconds", "update_seconds", "exchange_seconds")
        },
        "busy_seconds": statistics.median(busiest),
        "decisions_per_step": record["decisions"] / (steps + 1),
        "gradient_bytes": GRADIENT_BYTES * record["gradients"],
    }


def compare(rows: Sequence[Row]) -> list[Row]:
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


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Measures, prints and writes the results; returns them."""
    parser = make_parser("scale", __doc__)
    parser.add_argument("--preset", default="tiny", help="the run whose steps are timed [tiny]")
    parser.add_argument(
        "--ranks", type=int, nargs="+", default=[1, 2], help="numbers of ranks, 1 first [1 2]"
    )
    parser.add_argument("--steps", type=int, default=3, help="timed steps of each [3]")
    arguments = parse(parser, argv)
    if arguments.ranks[:1] != [1]:
        parser.error("--ranks begins with 1, with which the others are compared")
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    rows = [
        summarise(ranks, arguments.steps, launch_ranks(ranks, arguments.preset, arguments.steps + 1))
        for ranks in arguments.ranks
    ]
    results = {
        "benchmark": "scale",
        "machine": machine(),
        "load_before": load,
        "preset": arguments.preset,
        "steps": arguments.steps,
        "rows": compare(rows),
    }
    return end(results, arguments.out)


if __name__ == "__main__":
    main()
