"""The pool of earlier selves against which a policy plays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gamespiel.agents.hyperparameters import SelfPlaySettings
from gamespiel.agents.models.adapter_sets import Adapters
from gamespiel.agents.models.snapshots import Snapshot
from task_gym.errors import check_choice

PICKS = ("newest", "uniform", "win_rate")
"""Rules by which a snapshot is drawn."""

MEMORY = 100
"""Games after which a win rate forgets: it is that of a policy that changes."""

LEAST = 0.05
"""The weight of a snapshot that always loses: without any, it would never be met again."""


@dataclass
class Member:
    """A snapshot in the pool, and how the learner did against it.

    Attributes:
        snapshot: The snapshot.
        games: Games against it.
        win_rate: The learner's mean result of about the last ``MEMORY`` of them; a draw is 0.5.
    """

    snapshot: Snapshot
    games: int = 0
    win_rate: float = 0.5

    @property
    def name(self) -> str:
        """Returns the name under which its adapters are published."""
        return f"pool-{self.snapshot.step:06d}"


class Pool:
    """Snapshots of the policy, the oldest first; beyond ``size`` the oldest leaves.

    Args:
        every: Steps between snapshots. The first is of the run's start.
        size: The most snapshots.
        pick: "newest"; "uniform"; or "win_rate", with weight 1 - win rate, at least ``LEAST``, so that hard
            opponents come more often (Vinyals et al. 2019, doi:10.1038/s41586-019-1724-z, "prioritized
            fictitious self-play").
    """

    def __init__(
        self,
        every: int = SelfPlaySettings.pool_every,
        size: int = SelfPlaySettings.pool_size,
        pick: str = SelfPlaySettings.pool_pick,
    ) -> None:
        check_choice("pool_pick", pick, PICKS)
        self.every, self.size, self.pick = every, size, pick
        self.members: list[Member] = []

    def grow(self, adapters: Adapters, step: int) -> None:
        """Adds the adapters at the beginning of a step, if it is time. Asked again, it adds nothing."""
        if self.members and (step % self.every or self.members[-1].snapshot.step == step):
            return
        self.members = [*self.members, Member(Snapshot.take(adapters, step))][-self.size :]

    def weights(self) -> npt.NDArray[np.float64]:
        """Returns the probability of each member, float64 (members,)."""
        if self.pick == "newest":
            return np.eye(len(self.members))[-1]
        if self.pick == "uniform":
            return np.full(len(self.members), 1 / len(self.members))
        weights = np.array([max(1.0 - member.win_rate, LEAST) for member in self.members])
        share: npt.NDArray[np.float64] = weights / weights.sum()
        return share

    def draw(self, uniforms: npt.NDArray[np.float64]) -> list[int]:
        """Returns a member's index for each number in [0, 1)."""
        drawn = np.searchsorted(self.weights().cumsum(), uniforms, side="right")
        indices: list[int] = np.minimum(drawn, len(self.members) - 1).tolist()
        return indices

    def record(self, member: int, result: float) -> None:
        """Notes a game's result of the learner: 1 a win, 0.5 a draw, 0 a loss."""
        played = self.members[member]
        played.games += 1
        played.win_rate += (result - played.win_rate) / min(played.games, MEMORY)

    def metrics(self, scores: Sequence[Sequence[float]]) -> dict[str, float | list[float]]:
        """Returns the pool's metrics, given the learner's scores of the step against each member."""
        return {
            "size": len(self.members),
            "newest": self.members[-1].snapshot.step,
            "hardest": min(self.members, key=lambda member: member.win_rate).snapshot.step,
            "steps": [member.snapshot.step for member in self.members],
            "games": [len(own) for own in scores],
            "scores": [float(np.mean(own)) if own else float("nan") for own in scores],
            "win_rates": [member.win_rate for member in self.members],
        }
