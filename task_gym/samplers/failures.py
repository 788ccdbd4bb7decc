"""A store of failed starts, which are played again until they are mastered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from task_gym.arguments import check_least
from task_gym.errors import SamplerError
from task_gym.samplers.base import (
    LocalSampler,
    Outcome,
    Start,
    State,
    check_share,
    check_success_scores,
    pick,
    succeeded,
)

REPLAYS = 0.3
"""The share of episodes that are replays, if none is named."""

MASTERED = 2
"""Successes in a row with which a start is mastered."""


@dataclass(slots=True)
class _Failure:
    """A stored start."""

    task_id: int | None
    opponent: str | None
    seed: int
    score: float
    successes: int = 0
    replays: int = 0


class Failures(LocalSampler):
    """Keeps the starts of failed episodes, and draws one of them for a share of the episodes.

    A start is a task id, an opponent and a seed; no transition is kept. It is drawn with priority 1 - score.
    After each episode from it, its score is the mean of its score so far and the new one: after one success
    it is still drawn, less often. It leaves when it is mastered (two successes in a row), after
    ``max_replays``, or as the oldest of a full store.

    Args:
        failure_buffer_size: The most starts kept.
        failure_replay_prob: The probability that an episode starts from the store, unless it is empty.
        max_replays: Replays after which a start leaves, because some tasks cannot be won; None for no limit.
        seed: All draws follow from it.
        success_scores: As in ``task_gym.samplers.stages.Stages``.

    Raises:
        ArgumentError: an argument is outside what is allowed.
    """

    kind = "failures"
    purpose = 102

    def __init__(
        self,
        failure_buffer_size: int = 1000,
        failure_replay_prob: float = REPLAYS,
        max_replays: int | None = 10,
        *,
        seed: int = 0,
        success_scores: Mapping[str | int, float] | None = None,
    ) -> None:
        super().__init__(seed)
        self._capacity = check_least("failure_buffer_size", failure_buffer_size, 1)
        self._probability = check_share("failure_replay_prob", failure_replay_prob)
        self._limit = None if max_replays is None else check_least("max_replays", max_replays, 1)
        self._scores = check_success_scores(success_scores)
        # By task id, opponent and seed; the oldest first.
        self._buffer: dict[tuple[Any, ...], _Failure] = {}
        self._counts = dict.fromkeys(
            ("episodes", "replays", "stored", "mastered", "given_up", "pushed_out"), 0
        )

    def _draw(self, generator: np.random.Generator) -> Start:
        share, which = generator.random(2)
        if not self._buffer or share >= self._probability:
            return Start()
        failures = list(self._buffer.values())
        chosen = failures[pick([1 - failure.score for failure in failures], which)]
        return Start(chosen.task_id, chosen.opponent, chosen.seed, replayed=True)

    def _record(self, outcome: Outcome, score: float) -> list[State]:
        start = outcome.start
        key = (start.task_id, start.opponent, start.seed)
        success, failure = succeeded(outcome, self._scores), self._buffer.get(key)
        self._counts["episodes"] += 1
        self._counts["replays"] += start.replayed
        if failure is not None:
            failure.score = (failure.score + float(score)) / 2
            failure.successes = failure.successes + 1 if success else 0
            failure.replays += start.replayed
            if failure.successes == MASTERED:
                self._leave(key, "mastered")
            elif self._limit is not None and failure.replays >= self._limit:
                self._leave(key, "given_up")
        elif not success and not start.replayed:
            assert start.seed is not None
            if len(self._buffer) == self._capacity:
                self._leave(next(iter(self._buffer)), "pushed_out")
            self._buffer[key] = _Failure(start.task_id, start.opponent, start.seed, float(score))
            self._counts["stored"] += 1
        return []

    def _leave(self, key: tuple[Any, ...], why: str) -> None:
        del self._buffer[key]
        self._counts[why] += 1

    def _stats(self) -> State:
        counts = self._counts
        priorities = sum(1 - failure.score for failure in self._buffer.values())
        return {
            "size": len(self._buffer),
            "share": counts["replays"] / counts["episodes"] if counts["episodes"] else 0.0,
            "mean_priority": priorities / len(self._buffer) if self._buffer else 0.0,
            **counts,
        }

    def _state(self) -> State:
        return {"kept": [asdict(failure) for failure in self._buffer.values()], "counts": dict(self._counts)}

    def _load(self, state: State) -> None:
        if len(state["kept"]) > self._capacity:
            raise SamplerError(
                f"state: {len(state['kept'])} failures were given, allowed: at most {self._capacity}, "
                "this sampler's failure_buffer_size"
            )
        failures = [_Failure(**failure) for failure in state["kept"]]
        self._buffer = {(failure.task_id, failure.opponent, failure.seed): failure for failure in failures}
        self._counts = {name: int(count) for name, count in state["counts"].items()}
