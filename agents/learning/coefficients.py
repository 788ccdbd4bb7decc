"""The coefficients of a step's loss, their schedules, and the control of one of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gamespiel.agents.hyperparameters import Hyperparameters
from task_gym.errors import check_choice


@dataclass(frozen=True)
class Coefficients:
    """The numbers of a step's loss: hyper-parameters, and what schedules and control made of them.

    Attributes:
        cliprange: The ratio is clipped to 1 ± this.
        vf_coef: Weight of the value loss.
        ent_coef: Weight of the entropy bonus in this step.
        kl_coef: Weight of the divergence from the reference in this step.
        magnet_coef: Weight of the divergence from the magnet in this step; 0 without one.
        legal_coef: Weight of the loss of probability on illegal answers.
        legal_target: Mass on legal answers that is enough.
        sampler_weight_cap: The most that the weight between sampler and scorer may be; None for no weight.
    """

    cliprange: float = Hyperparameters.cliprange
    vf_coef: float = Hyperparameters.vf_coef
    ent_coef: float = Hyperparameters.ent_coef
    kl_coef: float = Hyperparameters.init_kl_coef
    magnet_coef: float = 0.0
    legal_coef: float = Hyperparameters.legal_coef
    legal_target: float = Hyperparameters.legal_target
    sampler_weight_cap: float | None = Hyperparameters.sampler_weight_cap


Schedule = Callable[[float], float]

SHAPES: Mapping[str, Schedule] = {
    "constant": lambda remaining: 1.0,
    "linear": lambda remaining: remaining,
    "cosine": lambda remaining: 0.5 - 0.5 * math.cos(math.pi * remaining),
}


@dataclass(frozen=True)
class Shaped:
    """A function of the progress remaining that falls in a shape of ``SHAPES``.

    Attributes:
        shape: The shape's name.
        initial: The value at the start.
        end: The value at which the shape is 0.

    Raises:
        ArgumentError: there is no such shape.
    """

    shape: str
    initial: float
    end: float = 0.0

    def __post_init__(self) -> None:
        check_choice("schedule", self.shape, tuple(SHAPES))

    def __call__(self, remaining: float) -> float:
        """Returns the value."""
        return self.end + (self.initial - self.end) * SHAPES[self.shape](remaining)


def schedule_of(setting: float | Schedule | None, shape: str, initial: float) -> float | Schedule:
    """Returns a function if one is given, else the hyper-parameter's number in its shape."""
    if callable(setting):
        return setting
    return initial if shape == "constant" else Shaped(shape, initial)


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
