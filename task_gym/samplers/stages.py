"""A curriculum of stages: the next begins when enough of the last episodes were successes."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from task_gym.arguments import check_least
from task_gym.errors import ArgumentError, SamplerError, check_choice, quote
from task_gym.ids import TASK_LIMIT, IdRanges
from task_gym.samplers.base import (
    LocalSampler,
    Outcome,
    Start,
    State,
    check_share,
    check_success_scores,
    check_weights,
    draw_opponent,
    draw_seed,
    succeeded,
)
from task_gym.stats import wilson

THRESHOLD = 0.70
"""The threshold of a stage before the last that names none."""

PROMOTE = ("rate", "confidence")
"""The rules of promotion; see ``Stages``."""

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a curriculum.

    Attributes:
        name: For reports.
        task_id_range: The first and the last task id. At most one of this and ``task_ids`` is given; without
            both, the environment draws among its own tasks.
        task_ids: A list of ids and (first, last) ranges, or ids that are ready, as
            ``trace_gym.programs.builtin.ids_of(level=3)``.
        opponent: None for the environment's own. A mapping of names to weights draws one for each episode.
        threshold: The success rate at which the next stage begins; None for 0.70. The last stage needs none.
        min_episodes: Episodes of this stage before the next may begin; None for a full window.
    """

    name: str
    task_id_range: Sequence[int] | None = None
    task_ids: Sequence[int | Sequence[int]] | IdRanges | None = None
    opponent: str | Mapping[str, float] | None = None
    threshold: float | None = None
    min_episodes: int | None = None

    def __post_init__(self) -> None:
        if isinstance(self.opponent, Mapping):
            check_weights(f"stage {self.name!r}: opponent", self.opponent)

    @property
    def ids(self) -> IdRanges | None:
        """The task ids to draw from; None for the environment's own.

        Raises:
            ArgumentError: both kinds of ids are given, or one of them is no sequence.
            TaskIdError: they are no task ids.
        """
        if self.task_id_range is not None and self.task_ids is not None:
            raise ArgumentError(
                f"stage {self.name!r}: task_id_range and task_ids were given, allowed: at most one of them"
            )
        if isinstance(self.task_ids, IdRanges):
            return self.task_ids
        for name, ids, allowed in (
            ("task_id_range", self.task_id_range, "(first, last)"),
            ("task_ids", self.task_ids, "a list of ids and (first, last) ranges"),
        ):
            if ids is not None and (isinstance(ids, (str, bytes)) or not isinstance(ids, Sequence)):
                raise ArgumentError(
                    f"stage {self.name!r}: {name}: {quote(ids)} was given, allowed: {allowed}"
                )
        if self.task_id_range is not None:
            return IdRanges([tuple(self.task_id_range)], TASK_LIMIT)
        return None if self.task_ids is None else IdRanges(list(self.task_ids), TASK_LIMIT)


class StagedSampler(LocalSampler):
    """Draws a stage, or a group, and then a task of it: a base.

    Args:
        what: The word for the stages in errors.
        stages: At least one ``Stage``, or mappings with its attributes.
        seed: All draws follow from it.
        success_scores: As in ``Stages``.

    Raises:
        ArgumentError: an argument is outside what is allowed.
    """

    _fixed = ("names",)

    def __init__(
        self,
        what: str,
        stages: Iterable[Stage | Mapping[str, Any]],
        seed: int,
        success_scores: Mapping[str | int, float] | None,
    ) -> None:
        super().__init__(seed)
        self._stages = read_stages(what, stages)
        self._ids = [stage.ids for stage in self._stages]
        self._scores = check_success_scores(success_scores)

    @property
    def task_ids(self) -> list[tuple[int, int]]:
        """The distinct ranges of all task ids, for the environment's ``task_ids``."""
        return list(dict.fromkeys(pair for ids in self._ids if ids is not None for pair in ids.ranges))

    def _draw_from(self, stage: int, generator: np.random.Generator, *note: int) -> Start:
        """Returns a start of a stage, with its number and further ones as the note."""
        seed, ids = draw_seed(generator), self._ids[stage]
        task_id = None if ids is None else ids.draw(lambda: generator)
        opponent = draw_opponent(self._stages[stage].opponent, generator)
        return Start(task_id, opponent, seed, note=(stage, *note))

    def _state(self) -> State:
        return {"names": [stage.name for stage in self._stages]}


class Stages(StagedSampler):
    """Draws from one stage after the other.

    A stage's success rate is that of its last ``progression_window`` episodes. Other episodes leave it as it
    is: faults, replays, starts from earlier stages, and episodes that began before the stage did.

    Args:
        stages: At least one ``Stage``, or mappings with its attributes.
        seed: All draws follow from it.
        progression_window: Episodes over which the success rate is taken.
        promote: "rate" begins the next stage when the success rate reaches the threshold. Because it is
            tested after every episode, luck promotes sooner or later. "confidence" does so when the lower end
            of the rate's 95% Wilson interval reaches it. At a threshold of 0.70 that takes 79 of 100.
        earlier_share: The share of episodes from earlier stages, each of them equally often.
        demote: Returns to the stage before when the success rate of a full window (with "confidence", the
            upper end of its interval) is below this; None never does.
        success_scores: By game or task id, the score above which an episode is a success, if the usual one
            cannot be reached.

    Raises:
        ArgumentError: an argument is outside what is allowed, or a threshold cannot be reached.
    """

    kind = "stages"
    purpose = 101

    def __init__(
        self,
        stages: Sequence[Stage | Mapping[str, Any]],
        *,
        seed: int = 0,
        progression_window: int = 100,
        promote: str = "rate",
        earlier_share: float = 0.0,
        demote: float | None = None,
        success_scores: Mapping[str | int, float] | None = None,
    ) -> None:
        super().__init__("stages", stages, seed, success_scores)
        check_choice("promote", promote, PROMOTE)
        self._window = check_least("progression_window", progression_window, 1)
        self._confident = promote == "confidence"
        self._earlier = check_share("earlier_share", earlier_share)
        self._least = [
            self._window if stage.min_episodes is None else check_least("min_episodes", stage.min_episodes, 1)
            for stage in self._stages
        ]
        self._thresholds = [self._read_threshold(stage) for stage in self._stages]
        self._demote = None if demote is None else self._read_demote(demote)
        self._stage = self._episodes = self._recorded = 0
        self._results: deque[bool] = deque(maxlen=self._window)
        self._events: list[State] = []

    @property
    def events(self) -> list[State]:
        """The stage changes so far: "promoted" or "demoted", from, to, and the rate that caused it."""
        return [dict(event) for event in self._events]

    def _read_threshold(self, stage: Stage) -> float | None:
        last = stage is self._stages[-1]
        if stage.threshold is None:
            if last:
                return None
            stated = THRESHOLD
        else:
            stated = check_share(f"stage {stage.name!r}: threshold", stage.threshold)
        highest = wilson(self._window, self._window).low if self._confident else 1.0
        if not 0 < stated <= highest:
            raise ArgumentError(
                f"stage {stage.name!r}: threshold {stated!r} was given, allowed: numbers above 0 and up to "
                f"{highest:.3f}"
                + (f", the lower end for {self._window} successes in a row" if self._confident else "")
            )
        return stated

    def _read_demote(self, demote: float) -> float:
        demote = check_share("demote", demote)
        lowest = min((threshold for threshold in self._thresholds if threshold is not None), default=1.0)
        if demote >= lowest:
            raise ArgumentError(
                f"demote: {demote!r} was given, allowed: numbers below the lowest threshold, {lowest!r}"
            )
        return demote

    def _draw(self, generator: np.random.Generator) -> Start:
        stage = self._stage
        # Drawn in every stage, so that an address has the same numbers in all.
        share, which = generator.random(2)
        if stage and share < self._earlier:
            stage = int(which * stage)
        return self._draw_from(stage, generator, len(self._events))

    def _record(self, outcome: Outcome, score: float) -> list[State]:
        start = outcome.start
        if start.replayed:
            return []
        self._recorded += 1
        # With fewer changes, it began before this stage did.
        if start.note != (self._stage, len(self._events)):
            return []
        self._results.append(succeeded(outcome, self._scores))
        self._episodes += 1
        rate, low, high = self._rate()
        threshold, last = self._thresholds[self._stage], self._stage == len(self._stages) - 1
        if not last and self._episodes >= self._least[self._stage]:
            assert threshold is not None
            if (low if self._confident else rate) >= threshold:
                return [self._change("promoted", 1)]
        if self._demote is None or not self._stage or len(self._results) < self._window:
            return []
        if (high if self._confident else rate) < self._demote:
            return [self._change("demoted", -1)]
        return []

    def _change(self, what: str, by: int) -> State:
        before, after = self._stages[self._stage].name, self._stages[self._stage + by].name
        rate = self._rate()[0]
        event: State = {
            "event": what, "from": before, "to": after, "success_rate": rate,
            "stage_episodes": self._episodes, "episodes": self._recorded,
        }  # fmt: skip
        _LOGGER.info(
            "%s from %r to %r after %d episodes at a success rate of %.2f",
            what, before, after, self._episodes, rate,
        )  # fmt: skip
        self._stage += by
        self._episodes = 0
        self._results.clear()
        self._events.append(event)
        return dict(event)

    def _rate(self) -> tuple[float, float, float]:
        """Returns the success rate with its interval; (0, 0, 1) without episodes."""
        if not self._results:
            return 0.0, 0.0, 1.0
        return wilson(sum(self._results), len(self._results))

    def _stats(self) -> State:
        rate, low, _ = self._rate()
        threshold = self._thresholds[self._stage]
        progress = 1.0
        if threshold is not None:
            reached = (low if self._confident else rate) / threshold
            progress = min(1.0, reached, self._episodes / self._least[self._stage])
        return {
            "stage": self._stage,
            "name": self._stages[self._stage].name,
            "progress": progress,
            "success_rate": rate,
            "stage_episodes": self._episodes,
            "episodes": self._recorded,
            "changes": len(self._events),
        }

    def _state(self) -> State:
        return {
            **super()._state(),
            "stage": self._stage,
            "stage_episodes": self._episodes,
            "episodes": self._recorded,
            "results": [int(result) for result in self._results],
            "events": self.events,
        }

    def _load(self, state: State) -> None:
        if len(state["results"]) > self._window:
            raise SamplerError(
                f"state: {len(state['results'])} results were given, allowed: at most {self._window}, "
                "this sampler's progression_window"
            )
        self._stage, self._episodes = int(state["stage"]), int(state["stage_episodes"])
        self._recorded = int(state["episodes"])
        self._results = deque((bool(result) for result in state["results"]), maxlen=self._window)
        self._events = [dict(event) for event in state["events"]]


def read_stages(what: str, specs: Iterable[Stage | Mapping[str, Any]]) -> list[Stage]:
    """Returns the stages of a list, each given as itself or as a mapping with its attributes.

    Raises:
        ArgumentError: this is no list, there are none, or one has another attribute, or no name.
    """
    if isinstance(specs, (str, Mapping)) or not isinstance(specs, Iterable):
        raise ArgumentError(
            f"{what}: {quote(specs)} was given, allowed: a list of Stage, or of mappings with its attributes"
        )
    known = [field.name for field in fields(Stage)]
    stages = []
    for stage in specs:
        if isinstance(stage, Mapping):
            for name in stage:
                check_choice("stage", name, known)
            if "name" not in stage:
                raise ArgumentError(f"stages: {dict(stage)!r} was given, allowed: a stage with a name")
            stage = Stage(**stage)
        if not isinstance(stage, Stage):
            raise ArgumentError(
                f"stages: {stage!r} was given, allowed: Stage, or a mapping with its attributes"
            )
        stages.append(stage)
    if not stages:
        raise ArgumentError(f"{what}: none was given, allowed: at least one")
    return stages
