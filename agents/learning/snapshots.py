"""Snapshots: adapters as they were. A run may keep a magnet, an average, and a pool of opponents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from gamespiel.agents import transfer
from gamespiel.agents.hyperparameters import Hyperparameters, SelfPlaySettings
from gamespiel.agents.models.adapters import Adapters


@dataclass(frozen=True)
class Snapshot:
    """The adapters of a policy after a number of steps. The base model is not copied.

    Attributes:
        step: Complete steps of the run when the snapshot was taken.
        adapters: The adapters by the names of the model's parameters, on the CPU.
    """

    step: int
    adapters: Mapping[str, Tensor]

    @classmethod
    def take(cls, adapters: Adapters, step: int) -> Snapshot:
        """Takes a snapshot of the adapters that learn."""
        copies = transfer.read(*adapters.values())
        return cls(step, {name: tensor.clone() for name, tensor in zip(adapters, copies, strict=True)})

    def put(self, adapters: Adapters) -> None:
        """Copies the snapshot into the adapters that learn."""
        for name, tensor in adapters.items():
            tensor.copy_(self.adapters[name])

    def towards(self, other: Snapshot, rate: float) -> Snapshot:
        """Returns the snapshot whose weights are a share ``rate`` of the way to another's, at its step."""
        if rate == 1.0:
            return other
        moved = {name: torch.lerp(param, other.adapters[name], rate) for name, param in self.adapters.items()}
        return Snapshot(other.step, moved)

    def save(self, path: Path) -> None:
        """Writes the adapters to a file, without the step."""
        save_file(dict(self.adapters), path)

    @classmethod
    def load(cls, learner: Adapters, step: int, path: Path) -> Snapshot:
        """Reads adapters from a file, of the names and shapes of the model's own.

        Raises:
            ValueError: the file has other adapters.
        """
        adapters = load_file(path)
        if {name: t.shape for name, t in adapters.items()} != {name: t.shape for name, t in learner.items()}:
            raise ValueError(f"{path} has adapters of another model or other LoRA settings")
        return cls(step, adapters)


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
    """Snapshots of the policy, the oldest first; the first is of the run's start.

    With ``pool_pick`` "win_rate" a member's weight is 1 - win rate, at least ``LEAST``, so that hard
    opponents come more often (Vinyals et al. 2019, doi:10.1038/s41586-019-1724-z, "prioritized fictitious
    self-play").

    Args:
        settings: Say when the pool grows, how large it is, and how members are drawn.
    """

    def __init__(self, settings: SelfPlaySettings) -> None:
        self.settings = settings
        self.members: list[Member] = []

    def grow(self, adapters: Adapters, step: int) -> None:
        """Adds the adapters at the beginning of a step, if it is time. Asked again, it adds nothing."""
        if self.members and (step % self.settings.pool_every or self.members[-1].snapshot.step == step):
            return
        self.members = [*self.members, Member(Snapshot.take(adapters, step))][-self.settings.pool_size :]

    def weights(self) -> npt.NDArray[np.float64]:
        """Returns the probability of each member, float64 (members,)."""
        if self.settings.pool_pick == "newest":
            return np.eye(len(self.members))[-1]
        if self.settings.pool_pick == "uniform":
            return np.full(len(self.members), 1 / len(self.members))
        weights = np.array([max(1.0 - member.win_rate, LEAST) for member in self.members])
        share: npt.NDArray[np.float64] = weights / weights.sum()
        return share

    def draw(self, uniforms: npt.NDArray[np.float64]) -> list[int]:
        """Returns a member's index for each number in [0, 1)."""
        places = np.searchsorted(self.weights().cumsum(), uniforms, side="right")
        indices: list[int] = np.minimum(places, len(self.members) - 1).tolist()
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
            "games": [len(row) for row in scores],
            "scores": [float(np.mean(row)) if row else float("nan") for row in scores],
            "win_rates": [member.win_rate for member in self.members],
        }
