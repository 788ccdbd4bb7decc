"""Compares PPO here with the GRPO of TRL and of AgileRL: `python -m benchmarks.learning_peers`.

The same embedded model learns Leduc poker against a random opponent for the same CPU seconds of one thread.
Each contender has a process (`benchmarks.peer_learners`), one after the other. Measured are the decisions per
CPU second of training, and the score in held-out games without a mask, before and after.

AgileRL needs an environment of its own: `make .venv-agilellm/.installed`. A contender whose library is not
installed is left out, and a line says so.

Ends in one line of JSON, which is also written to a new file in `runs/benchmarks/`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.ending import end, parse
from benchmarks.machine import machine

ROOT = Path(__file__).resolve().parent.parent

LIBRARIES = {"gamespiel": "stable_baselines3", "trl": "trl", "agilerl": "bitsandbytes, agilerl"}
"""By contender, the modules without which it is left out."""

OWN = {"agilerl": ".venv-agilellm"}
"""Contenders that have an environment of their own, if it is there."""


def find_python(name: str) -> Path:
    """Returns the Python that runs a contender."""
    own = ROOT / OWN[name] / "bin" / "python" if name in OWN else Path(sys.executable)
    return own if own.exists() else Path(sys.executable)


def explain_missing(name: str, python: Path) -> str:
    """Returns why a contender cannot run; "" if it can."""
    tried = subprocess.run(
        [python, "-c", f"import {LIBRARIES[name]}"], cwd=ROOT, capture_output=True, text=True
    )
    if tried.returncode == 0:
        return ""
    reason = tried.stderr.strip().rpartition("\n")[2]
    where = OWN.get(name)
    return f"{reason}; install it with: make {f'{where}/.installed' if where else 'setup'}"


def run_contender(name: str, python: Path, seed: int, seconds: float, games: int) -> dict[str, Any]:
    """Trains and measures a contender in a process with one thread.

    Raises:
        RuntimeError: the process failed.
    """
    options = ["--seconds", str(seconds), "--seed", str(seed), "--games", str(games)]
    done = subprocess.run(
        [python, "-m", "benchmarks.peer_learners", name, *options],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "TRL_EXPERIMENTAL_SILENCE": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr[-2000:]}")
    row: dict[str, Any] = json.loads(done.stdout.strip().rpartition("\n")[2])
    return row


def find_ratios(rows: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Returns how many times the decisions per CPU second of each peer GameSpiel's are, over all seeds."""
    totals: dict[str, tuple[float, float]] = {}
    for row in rows:
        decisions, seconds = totals.get(row["contender"], (0, 0.0))
        totals[row["contender"]] = decisions + row["decisions"], seconds + row["cpu_seconds"]
    rates = {name: decisions / seconds for name, (decisions, seconds) in totals.items() if seconds}
    own = rates.pop("gamespiel", None)
    return {name: round(own / rate, 2) for name, rate in rates.items() if own is not None and rate}


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    """Measures and returns the results."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--contenders", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    parser.add_argument("--seconds", type=float, default=180, help="CPU seconds of training [180]")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], metavar="SEED", help="a run each [0]")
    parser.add_argument("--games", type=int, default=2000, help="held-out games of a score [2000]")
    given = parse(parser, argv)
    rows, skipped = [], {}
    for name in given.contenders:
        python = find_python(name)
        if reason := explain_missing(name, python):
            skipped[name] = reason
            print(f"{name} is left out: {reason}", flush=True)
            continue
        for seed in given.seeds:
            rows.append(run_contender(name, python, seed, given.seconds, given.games))
            print(
                f"{name}, seed {seed}: {rows[-1]['decisions_per_cpu_second']} decisions per CPU second, "
                f"score {rows[-1]['before']['score']} -> {rows[-1]['after']['score']}",
                flush=True,
            )
    results = {
        "benchmark": "learning_peers",
        "seconds": given.seconds,
        "games": given.games,
        "rows": rows,
        "ratios": find_ratios(rows),
        "skipped": skipped,
        "machine": machine(),
    }
    return end(results, given.out)


if __name__ == "__main__":
    main()
