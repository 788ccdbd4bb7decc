"""Launches of two ranks by ``torchrun``, and what runs leave in a folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from gamespiel.agents.runs import checkpoint
from tests.gamespiel.runs import ROOT

LONGEST = 900
"""Seconds that a launch may take on a machine that does much else."""

ROUNDED = 0.002
"""The largest ``distance`` of weights that were learned from float sums in different orders.

It was at most 0.0003 where it was measured, and single weights differ several times as much on another
processor. Runs that learn from other episodes are more than 1 apart.
"""


def torchrun(*arguments: str, restarts: int = 0) -> list[str]:
    """Returns the command that starts two ranks."""
    ranks = ["--standalone", "--nproc-per-node", "2", "--max-restarts", str(restarts)]
    return [sys.executable, "-m", "torch.distributed.run", *ranks, *arguments]


def environment() -> dict[str, str]:
    """Returns an environment in which each rank has one thread."""
    return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


def play_scenarios(module: str, folder: Path, *arguments: str) -> Path:
    """Launches two ranks that play all scenarios of a module; returns the folder."""
    ended = subprocess.run(
        torchrun("-m", module, str(folder), *arguments),
        cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=LONGEST, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr[-4000:]
    return folder


def read_results(scenarios: Path, name: str) -> list[Any]:
    """Returns what the two ranks found in a scenario."""
    return [json.loads((scenarios / f"{name}.{rank}.json").read_text()) for rank in range(2)]


def adapters_of(run: Path) -> dict[str, torch.Tensor]:
    return load_file(checkpoint.find(run) / "adapter" / "adapter_model.safetensors")


def adapter_distance(run: Path, other: Path) -> float:
    """Returns the ``distance`` of two runs' adapters."""
    return distance(adapters_of(run), adapters_of(other))


def distance(weights: Mapping[str, Any], others: Mapping[str, Any]) -> float:
    """Returns how far weights are apart, as a share of how far the other ones have moved.

    The matrices lora_B begin at zero, so their norm is what was learned. Single weights do not compare: Adam
    turns the rounding of a gradient near zero into a part of the rate, and processors round differently.
    """
    assert weights.keys() == others.keys()
    names = [name for name in others if "lora_B" in name]
    ours, theirs = (
        torch.cat([torch.as_tensor(given[name]).flatten() for name in names]) for given in (weights, others)
    )
    return float((ours - theirs).norm() / theirs.norm())
