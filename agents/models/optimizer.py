"""An AdamW whose parameter groups keep their own learning-rate scale under any schedule."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file


class ScaledAdamW(torch.optim.AdamW):
    """AdamW that multiplies each group's learning rate by the group's ``lr_scale`` within ``step``.

    Stable-Baselines3 writes one rate into all parameter groups before every update, which would undo the
    critic's higher rate. A factor that is applied within ``step`` survives that, and any scheduler.
    """

    def __init__(self, params: Any, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        for group in self.param_groups:
            group.setdefault("lr_scale", 1.0)

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        scheduled = [group["lr"] for group in self.param_groups]
        try:
            for group in self.param_groups:
                group["lr"] = group["lr"] * group["lr_scale"]
            return super().step(closure)
        finally:
            for group, rate in zip(self.param_groups, scheduled, strict=True):
                group["lr"] = rate


def write_moments(optimizer: torch.optim.Optimizer, path: Path) -> None:
    """Writes an AdamW's state to a file without pickles: tensors by "PARAMETER.NAME", and its groups."""
    state = optimizer.state_dict()
    tensors = {
        f"{parameter}.{name}": tensor.detach().cpu().contiguous()
        for parameter, moments in state["state"].items()
        for name, tensor in moments.items()
    }
    save_file(tensors, path, metadata={"param_groups": json.dumps(state["param_groups"])})


def read_moments(path: Path) -> dict[str, Any]:
    """Returns the state that ``write_moments`` wrote, on the CPU.

    Raises:
        KeyError, ValueError, SafetensorError, OSError: the file is missing, torn or another one.
    """
    state: dict[int, dict[str, torch.Tensor]] = {}
    with safe_open(path, "pt") as file:
        for key in file.keys():  # noqa: SIM118  (no mapping)
            parameter, _, name = key.partition(".")
            state.setdefault(int(parameter), {})[name] = file.get_tensor(key)
        groups = json.loads((file.metadata() or {})["param_groups"])
    return {"state": state, "param_groups": [{**group, "betas": tuple(group["betas"])} for group in groups]}
