"""The magnet: a moving reference that draws a self-playing policy towards an equilibrium."""

from __future__ import annotations

from gamespiel.agents.hyperparameters import Hyperparameters
from gamespiel.agents.models.adapter_sets import Adapters
from gamespiel.agents.models.snapshots import Snapshot


class Magnet:
    """A slower copy of the policy, from which the update's divergence is taken.

    In self-play the best answer changes with the policy, and plain policy gradients go round in cycles. A
    divergence from a fixed policy makes the dynamics converge, to an equilibrium of the game with that
    divergence in its payoff. The closer the magnet is to an equilibrium, or the smaller the weight, the
    closer is that solution to one of the game itself (Sokota et al. 2023, arXiv:2206.05825, sections 3, 4).

    Args:
        every: Steps between its moves; 0 keeps it at the policy of the run's start.
        rate: Share of the way to the policy that a move goes, in the space of adapters' weights.

    Attributes:
        snapshot: The magnet; None before the first step.
    """

    def __init__(
        self, every: int = Hyperparameters.magnet_every, rate: float = Hyperparameters.magnet_rate
    ) -> None:
        self.every, self.rate = every, rate
        self.snapshot: Snapshot | None = None

    def move(self, adapters: Adapters, step: int) -> Snapshot:
        """Returns a step's magnet, given the adapters at its beginning. Asked again, it does not move."""
        if self.snapshot is None:
            self.snapshot = Snapshot.take(adapters, step)
        elif self.every and step % self.every == 0 and self.snapshot.step != step:
            self.snapshot = self.snapshot.towards(Snapshot.take(adapters, step), self.rate)
        return self.snapshot
