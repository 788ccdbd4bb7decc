"""An AdamW whose parameter groups keep their own learning-rate scale under any schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


class ScaledAdamW(torch.optim.AdamW):
    """AdamW that multiplies each group's learning rate by the group's ``lr_scale`` within ``step``.

    Stable-Baselines3 writes one rate into all parameter groups before every update, which would undo the
    critic's higher rate. A factor that is applied within ``step`` survives that, and any scheduler.
    """

    def __init__(self, params: Any, **kwargs: Any) -> None:
        super().__init__(params, **kwargs)
        for group in self.param_groups:
            group.setdefault("lr_scale", 1.0)

    def effective_rates(self) -> list[float]:
        """Returns the learning rates that the next step will use, one per group."""
        return [group["lr"] * group["lr_scale"] for group in self.param_groups]

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        scheduled = [group["lr"] for group in self.param_groups]
        try:
            for group in self.param_groups:
                group["lr"] = group["lr"] * group["lr_scale"]
            return super().step(closure)
        finally:
            for group, rate in zip(self.param_groups, scheduled, strict=True):
                group["lr"] = rate
