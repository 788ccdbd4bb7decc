"""The curriculum without an order: groups of tasks, each drawn equally often."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from task_gym.errors import ArgumentError
from task_gym.samplers.base import Outcome, Start, State, pick, succeeded
from task_gym.samplers.stages import Stage, StagedSampler


class Uniform(StagedSampler):
    """Draws every group of tasks equally often, then a task of the group.

    Args:
        groups: At least one group: a ``task_gym.samplers.stages.Stage`` without threshold, or a mapping
            with its attributes. A game, a level and an opponent each can be a group.
        seed: All draws follow from it.
        success_scores: As in ``task_gym.samplers.stages.Stages``.

    Raises:
        ArgumentError: an argument is outside what is allowed.
    """

    kind = "uniform"
    purpose = 103

    def __init__(
        self,
        groups: Sequence[Stage | Mapping[str, Any]],
        *,
        seed: int = 0,
        success_scores: Mapping[str | int, float] | None = None,
    ) -> None:
        super().__init__("groups", groups, seed, success_scores)
        for group in self._stages:
            if group.threshold is not None or group.min_episodes is not None:
                raise ArgumentError(
                    f"group {group.name!r}: threshold or min_episodes was given, allowed: in Stages only"
                )
        self._episodes = 0

    def result_of(self, outcome: Outcome) -> tuple[str, bool] | None:
        """Returns an episode's group and whether it is a success; None if no group or no score is known."""
        start = outcome.start
        if start.replayed or len(start.note) != 1 or outcome.score is None:
            return None
        return self._stages[start.note[0]].name, succeeded(outcome, self._scores)

    def _draw(self, generator: np.random.Generator) -> Start:
        even = np.full(len(self._stages), 1 / len(self._stages))
        return self._draw_from(pick(even, generator.random()), generator)

    def _record(self, outcome: Outcome, score: float) -> list[State]:
        self._episodes += not outcome.start.replayed and len(outcome.start.note) == 1
        return []

    def _stats(self) -> State:
        return {"episodes": self._episodes}

    def _state(self) -> State:
        return {**super()._state(), "episodes": self._episodes}

    def _load(self, state: State) -> None:
        self._episodes = int(state["episodes"])
