"""Launches of two ranks by ``torchrun``, and what they leave in a folder."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from gamespiel.agents.runs import checkpoint
from tests.gamespiel.runs import ROOT

LONGEST = 900
"""Seconds that a launch may take on a machine that does much else."""


def torchrun(*arguments: str, restarts: int = 0) -> list[str]:
    """Returns the command that starts two ranks."""
    ranks = ["--standalone", "--nproc-per-node", "2", "--max-restarts", str(restarts)]
    return [sys.executable, "-m", "torch.distributed.run", *ranks, *arguments]


def environment() -> dict[str, str]:
    """Returns an environment in which each rank has one thread."""
    return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


def read_results(scenarios: Path, name: str) -> list[Any]:
    """Returns what the two ranks found in a scenario."""
    return [json.loads((scenarios / f"{name}.{rank}.json").read_text()) for rank in range(2)]


def adapters_of(run: Path) -> dict[str, torch.Tensor]:
    return load_file(checkpoint.find(run) / "adapter" / "adapter_model.safetensors")
