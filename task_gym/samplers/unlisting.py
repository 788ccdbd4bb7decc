"""The plan by which the list of legal actions leaves the prompts, in a share of the episodes that grows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from task_gym.arguments import is_whole
from task_gym.errors import ArgumentError

_PURPOSE = 107
"""Keeps these draws apart from those of all samplers with the same seed."""


@dataclass(frozen=True)
class Unlisting:
    """Takes the list of legal actions out of the prompts, in a larger share of the episodes at each step.

    Which episodes have the list follows from seed, step and episode alone, so it has no state.

    Attributes:
        first: The last step, from 0, at which all episodes have the list.
        last: The first step at which none has it; between them the share falls linearly.
        seed: Seed of the draws.

    Raises:
        ArgumentError: the steps are no whole numbers that rise.
    """

    first: int
    last: int
    seed: int = 0

    def __post_init__(self) -> None:
        if not (is_whole(self.first) and is_whole(self.last) and 0 <= self.first < self.last):
            raise ArgumentError(
                f"Unlisting: steps {self.first!r} and {self.last!r} were given, allowed: whole numbers from "
                "0, the second above the first"
            )

    def share(self, step: int) -> float:
        """Returns the share of a step's episodes that have the list."""
        return min(1.0, max(0.0, (self.last - step) / (self.last - self.first)))

    def draw(self, step: int, episodes: int) -> list[bool]:
        """Returns whether each of a step's episodes has the list; the first of more episodes are the same."""
        sequence = np.random.SeedSequence([self.seed, _PURPOSE, step])
        uniforms = np.random.Generator(np.random.Philox(sequence)).random(episodes)
        return [bool(uniform < self.share(step)) for uniform in uniforms]
