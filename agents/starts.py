"""The starts of a step's episodes: chosen by a curriculum, by a store of failures, or by neither."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from task_gym.errors import ArgumentError
from task_gym.samplers import Outcome, Start, TaskSampler
from task_gym.samplers.base import State
from task_gym.samplers.uniform import Uniform
from task_gym.samplers.unlisting import Unlisting
from task_gym.wrappers.sampled import sampled

SHOWN = (bool, int, float, str)
"""Types of a sampler's numbers and names that a row of metrics can have."""


class Starts:
    """Asks samplers for the starts of a step's episodes, and reports the outcomes to them.

    Draws are addressed by (step, episode), and outcomes are applied in the order of the episodes. So a run is
    the same with any number of environments.

    Args:
        stages: Chooses tasks and opponents, such as ``task_gym.samplers.Stages``; None leaves them to the
            environment.
        failures: Chooses the episodes that are replays (``task_gym.samplers.Failures``); None for none. It is
            asked first.
        unlisting: Decides which episodes list the legal actions; None leaves it to the environment.
    """

    def __init__(
        self,
        stages: TaskSampler | None = None,
        failures: TaskSampler | None = None,
        unlisting: Unlisting | None = None,
    ) -> None:
        self.stages, self.failures, self.unlisting = stages, failures, unlisting
        self._listed: list[bool] = []
        self._replayed = 0.0
        self._results: dict[str, list[bool]] = {}

    def draw(self, step: int, seeds: Sequence[int]) -> list[Start]:
        """Returns the starts of a step's episodes; ``seeds`` are for those that no sampler seeds."""
        drawn = [self._draw((step, episode)) for episode in range(len(seeds))]
        if self.unlisting is not None:
            self._listed = self.unlisting.draw(step, len(seeds))
            pairs = zip(drawn, self._listed, strict=True)
            drawn = [replace(start, list_actions=listed) for start, listed in pairs]
        return [
            start if start.seed is not None else replace(start, seed=seed)
            for start, seed in zip(drawn, seeds, strict=True)
        ]

    def _draw(self, address: tuple[int, int]) -> Start:
        if self.failures is not None:
            start = self.failures.draw(address)
            if start.replayed:
                return start
        return Start() if self.stages is None else self.stages.draw(address)

    def record(self, starts: Sequence[Start], infos: Sequence[Mapping[str, Any]]) -> None:
        """Applies the outcomes of a step's episodes, in order, from the infos of their ends.

        Raises:
            ArgumentError: an info has no score: the environment is no task environment.
        """
        outcomes = [Outcome.of(start, info) for start, info in zip(starts, infos, strict=True)]
        for sampler in self._samplers.values():
            sampler.record(outcomes)
        counted = [outcome.start.replayed for outcome in outcomes if outcome.score is not None]
        self._replayed = sum(counted) / max(1, len(counted))
        self._results = {}
        if isinstance(self.stages, Uniform):
            for name, success in filter(None, map(self.stages.result_of, outcomes)):
                self._results.setdefault(name, []).append(success)

    def metrics(self) -> dict[str, float | str]:
        """Returns the samplers' numbers and names after the last ``record``, with their prefixes.

        ``replay/share`` is the share of replays among that step's episodes without a fault.
        ``curriculum/listed`` is the share of that step's episodes whose prompts list the legal actions.
        ``curriculum/success/NAME`` is the success rate of that step's episodes from a group.
        """
        metrics = {
            f"{prefix}/{name}": value
            for prefix, sampler in self._samplers.items()
            for name, value in _flatten_stats(sampler.stats())
        }
        for name, results in self._results.items():
            metrics[f"curriculum/success/{name}"] = sum(results) / len(results)
        if self.unlisting is not None:
            metrics["curriculum/listed"] = sum(self._listed) / max(1, len(self._listed))
        return metrics | ({"replay/share": self._replayed} if self.failures is not None else {})

    def state_dict(self) -> State:
        """Returns all from which later draws follow, as plain data."""
        return {prefix: sampler.state_dict() for prefix, sampler in self._samplers.items()}

    def load_state_dict(self, state: State) -> None:
        """Continues exactly from a state.

        Raises:
            KeyError: the state lacks a sampler.
            SamplerError: it is the state of another sampler.
        """
        for prefix, sampler in self._samplers.items():
            sampler.load_state_dict(state[prefix])

    @property
    def _samplers(self) -> dict[str, TaskSampler]:
        """The samplers that there are, by the prefix of their metrics."""
        both = {"curriculum": self.stages, "replay": self.failures}
        return {prefix: sampler for prefix, sampler in both.items() if sampler is not None}


def check_not_sampled(env: Any) -> None:
    """Raises ArgumentError if an environment of a vector takes its starts from a sampler itself.

    The algorithm seeds every reset, which keeps a ``FailureReplay`` from replaying at all, and a
    ``Curriculum`` would hear of outcomes in an order that depends on the number of environments.
    """
    for inner in getattr(env, "envs", ()):
        if (wrapper := sampled(inner)) is not None:
            raise ArgumentError(
                f"env: {wrapper.class_name()} was given around an environment, allowed: none there; give its "
                "sampler to the algorithm, as starts=Starts(stages, failures)"
            )


def _flatten_stats(stats: State) -> Iterator[tuple[str, float | str]]:
    """Yields the numbers and names of a sampler; those of a mapping in it as NAME/KEY."""
    for name, value in stats.items():
        for key, inner in value.items() if isinstance(value, Mapping) else [("", value)]:
            if isinstance(inner, SHOWN):
                yield f"{name}/{key}" if key else name, inner
