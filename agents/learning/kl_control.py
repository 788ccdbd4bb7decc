"""A controller of the coefficient of the divergence from the reference policy."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gamespiel.agents.hyperparameters import Hyperparameters

MEASURED_EVERY = 10
"""Steps between two that measure a divergence without any effect: it takes a forward of all turns."""


@dataclass
class AdaptiveKLController:
    """Proportional control of the KL coefficient (Ziegler et al. 2019, arXiv:1909.08593, section 2.2).

    Attributes:
        coefficient: The divergence's weight in the loss.
        target: Divergence from the reference that the control aims at, in nats per decision.
        horizon: Turns over which the coefficient reacts; None keeps it fixed.
    """

    coefficient: float
    target: float
    horizon: int | None = Hyperparameters.kl_horizon

    def __post_init__(self) -> None:
        if self.coefficient < 0 or self.target <= 0 or (self.horizon is not None and self.horizon < 1):
            raise ValueError(
                "KL control needs coefficient >= 0, target > 0 and horizon >= 1 (or None), "
                f"got {self.coefficient}, {self.target}, {self.horizon}"
            )

    def needs_divergence(self, step: int) -> bool:
        """Returns whether a step's divergence is measured: a fixed weight of 0 asks for some of them only.

        Args:
            step: The number of complete steps. The first step is measured, and every ``MEASURED_EVERY``-th.
        """
        free = self.coefficient == 0 and self.horizon is None
        return not free or step == 0 or (step + 1) % MEASURED_EVERY == 0

    def update(self, kl: float, turns: int) -> None:
        """Moves the coefficient after ``turns`` turns of mean divergence ``kl``, in nats.

        The relative error is clipped to ±0.2, and a step longer than the horizon counts as one horizon. So
        one update changes the coefficient by a fifth at most.

        Raises:
            FloatingPointError: the divergence is not a finite number.
        """
        if not math.isfinite(kl):
            raise FloatingPointError(f"the divergence from the reference is {kl}: the update has diverged")
        if self.horizon is None:
            return
        error = min(max(kl / self.target - 1.0, -0.2), 0.2)
        self.coefficient *= 1.0 + error * min(turns / self.horizon, 1.0)
