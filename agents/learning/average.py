"""The average of a run's last policies, which is its result where single policies turn around one point."""

from __future__ import annotations

from gamespiel.agents.models.adapter_sets import Adapters
from gamespiel.agents.models.snapshots import Snapshot


class Average:
    """An exponential moving average of the adapters after each step.

    In self-play the policy circles an equilibrium, and the centre is nearer to it than most of the circle.
    Weights are averaged, not probabilities, so that the result is one set of adapters.

    Args:
        decay: Share that a step leaves of the average so far. 0.98 averages about the last 50 steps.

    Attributes:
        snapshot: The average; None before the first step.
    """

    def __init__(self, decay: float) -> None:
        self.decay = decay
        self.snapshot: Snapshot | None = None

    def add(self, adapters: Adapters, step: int) -> None:
        """Adds the adapters after their ``step``-th step; in the first steps all of them count the same."""
        present = Snapshot.take(adapters, step)
        rate = max(1.0 - self.decay, 1.0 / step)
        self.snapshot = present if self.snapshot is None else self.snapshot.towards(present, rate)
