"""Snapshots: a policy's adapters as they were, which can take the place of its present ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from gamespiel.agents.policy import LLMPolicy


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
    def of(cls, policy: LLMPolicy, step: int) -> Snapshot:
        """Takes a snapshot."""
        return cls(step, {name: p.detach().cpu().clone() for name, p in _adapters(policy).items()})

    @contextmanager
    def playing(self, policy: LLMPolicy) -> Iterator[None]:
        """Makes the policy play as it did then within the context, without gradients; the critic stays.

        The parameters keep their identity, so an optimizer does not notice.
        """
        own = {name: (p, p.data) for name, p in _adapters(policy).items()}
        try:
            for name, (parameter, present) in own.items():
                parameter.data = self.adapters[name].to(present.device)
            with torch.no_grad():
                yield
        finally:
            for parameter, present in own.values():
                parameter.data = present

    def put(self, policy: LLMPolicy) -> None:
        """Gives the adapters to the policy for good."""
        for name, parameter in _adapters(policy).items():
            parameter.data.copy_(self.adapters[name])

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
    def load(cls, policy: LLMPolicy, step: int, path: Path) -> Snapshot:
        """Reads the adapters of such a policy from a file.

        Raises:
            ValueError: the file has other adapters.
        """
        adapters, own = load_file(path), _adapters(policy)
        if {name: t.shape for name, t in adapters.items()} != {name: p.shape for name, p in own.items()}:
            raise ValueError(f"{path} has adapters of another model or other LoRA settings")
        return cls(step, adapters)


def _adapters(policy: LLMPolicy) -> dict[str, torch.nn.Parameter]:
    return {name: p for name, p in policy.model.named_parameters() if p.requires_grad}
