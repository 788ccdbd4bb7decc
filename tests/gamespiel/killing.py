"""Kills a run again and again with SIGKILL, and goes on with it: ``python -m tests.gamespiel.killing``.

Each life of the run is a fork of this process, which has imported everything and trained nothing. So a life
costs a model, and not the seconds that PyTorch takes to import. This process waits for a random moment
of the life and kills it. The last life is left alone until the run is over.

Prints one line of JSON: per kill, the step of the newest checkpoint, the stage in it, and the stage in the
last row of metrics.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch

from gamespiel.agents.runs import checkpoint
from gamespiel.agents.runs.loggers import read_rows
from gamespiel.assembly import make_algorithm
from gamespiel.config import SAVED_NAME, saved_config
from tests.gamespiel.runs import fork, staged, train_quietly

PATIENCE = 300
"""Seconds within which a life must come to its end."""


def live(run: Path, settings: dict[str, str]) -> int:
    """Starts or goes on with the run in a fork; returns its process id."""
    if (run / SAVED_NAME).exists():
        return fork(lambda: train_quietly(saved_config(run), resume=run))
    return fork(lambda: train_quietly(staged(run, **settings)))


def rows(run: Path) -> int:
    path = run / "metrics.jsonl"
    return path.read_text(encoding="utf-8").count("\n") if path.exists() else 0


def kill(child: int, run: Path, more: int, delay: float) -> bool:
    """Kills a life ``delay`` seconds after it logged ``more`` rows; returns whether it was still alive."""
    until, deadline = rows(run) + more, time.monotonic() + PATIENCE
    while rows(run) < until and time.monotonic() < deadline:
        if os.waitpid(child, os.WNOHANG) != (0, 0):
            return False
        time.sleep(0.001)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True


def found(run: Path) -> dict[str, Any]:
    """Returns what a kill has left: the newest checkpoint with its stage, and the last row with its stage."""
    kept, logged = checkpoint.checkpoints(run), read_rows(run / "metrics.jsonl") if rows(run) else []
    stage = None
    if kept:
        stage = json.loads((kept[-1] / checkpoint.SAMPLERS).read_text())["curriculum"]["stage"]
    return {
        "checkpoint": checkpoint.step_of(kept[-1]) if kept else None,
        "stage": stage,
        "logged": logged[-1]["step"] if logged else 0,
        "logged_stage": logged[-1]["curriculum/stage"] if logged else 0,
    }


def main(run: Path, kills: int, seed: int, settings: dict[str, str]) -> None:
    """Kills the run at ``kills`` random moments, and lets it end."""
    torch.set_num_threads(1)
    make_algorithm(staged(run, **settings))  # and imports what is imported only at the first use
    generator, left = random.Random(seed), []
    while len(left) < kills:
        child = live(run, settings)
        # Half of the moments are right after a row, the others anywhere: in a forward, in a checkpoint.
        more, delay = generator.choice((0, 1, 1, 2, 3)), generator.choice((0.0, 0.2 * generator.random()))
        if not kill(child, run, more, delay):
            raise SystemExit(f"the run ended after {len(left)} of {kills} kills: give it more steps")
        left.append(found(run))
    _, status = os.waitpid(live(run, settings), 0)
    print(json.dumps(left))
    raise SystemExit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4]))
