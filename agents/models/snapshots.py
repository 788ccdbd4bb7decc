"""Snapshots: adapters as they were, which can be published in the place of the present ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from gamespiel.agents import transfer
from gamespiel.agents.models.adapter_sets import Adapters


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
        own = transfer.read(*adapters.values())
        return cls(step, {name: tensor.clone() for name, tensor in zip(adapters, own, strict=True)})

    def put(self, adapters: Adapters) -> None:
        """Copies the snapshot into the adapters that learn."""
        for name, tensor in adapters.items():
            tensor.copy_(self.adapters[name])

    def towards(self, other: Snapshot, rate: float) -> Snapshot:
        """Returns the snapshot whose weights are a share ``rate`` of the way to another's, at its step."""
        if rate == 1.0:
            return other
        moved = {name: torch.lerp(own, other.adapters[name], rate) for name, own in self.adapters.items()}
        return Snapshot(other.step, moved)

    def save(self, path: Path) -> None:
        """Writes the adapters to a file, without the step."""
        save_file(dict(self.adapters), path)

    @classmethod
    def load(cls, own: Adapters, step: int, path: Path) -> Snapshot:
        """Reads adapters from a file, of the names and shapes of the model's own.

        Raises:
            ValueError: the file has other adapters.
        """
        adapters = load_file(path)
        if {name: t.shape for name, t in adapters.items()} != {name: t.shape for name, t in own.items()}:
            raise ValueError(f"{path} has adapters of another model or other LoRA settings")
        return cls(step, adapters)
