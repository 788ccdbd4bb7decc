"""Curricula without stages: groups of tasks that are drawn by what is learned on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from task_gym.arguments import check_least
from task_gym.errors import ArgumentError, SamplerError
from task_gym.samplers.base import LocalSampler, Outcome, Start, State, check_share, pick, succeeded
from task_gym.samplers.stages import Stage, StagedSampler


class Groups(StagedSampler):
    """Draws a group of tasks with a probability of its own, then a task of the group: a base.

    Args:
        groups: At least one group: a ``task_gym.samplers.stages.Stage`` without threshold, or a mapping
            with its attributes. A game, a level and an opponent each can be a group.
        seed: All draws follow from it.
        success_scores: As in ``task_gym.samplers.stages.Stages``.

    Raises:
        ArgumentError: an argument is outside what is allowed.
    """

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
        self._episodes = [0] * len(self._stages)

    def probabilities(self) -> NDArray[np.float64]:
        """Returns the probability of each group, float64 (groups,)."""
        return np.full(len(self._stages), 1 / len(self._stages))

    def result_of(self, outcome: Outcome) -> tuple[str, bool] | None:
        """Returns an episode's group and whether it is a success; None if no group or no score is known."""
        start = outcome.start
        if start.replayed or len(start.note) != 1 or outcome.score is None:
            return None
        return self._stages[start.note[0]].name, succeeded(outcome, self._scores)

    def _draw(self, generator: np.random.Generator) -> Start:
        return self._draw_from(pick(self.probabilities(), generator.random()), generator)

    def _record(self, outcome: Outcome, score: float) -> list[State]:
        start = outcome.start
        if start.replayed or len(start.note) != 1:
            return []
        group = start.note[0]
        self._episodes[group] += 1
        self._learn(group, succeeded(outcome, self._scores), score)
        return []

    def _learn(self, group: int, success: bool, score: float) -> None:
        """Applies an outcome of a group, whose episodes are counted already."""

    def _stats(self) -> State:
        names = (group.name for group in self._stages)
        return {
            "episodes": sum(self._episodes),
            "probabilities": dict(zip(names, self.probabilities().tolist(), strict=True)),
        }

    def _state(self) -> State:
        return {**super()._state(), "group_episodes": list(self._episodes)}

    def _load(self, state: State) -> None:
        self._episodes = [int(count) for count in state["group_episodes"]]


class Uniform(Groups):
    """Draws every group equally often."""

    kind = "uniform"
    purpose = 103


class LearningProgress(Groups):
    """Draws the groups whose success rate changes most, upwards or downwards.

    The progress of a group is the difference between a fast and a slow moving average of its successes, as
    an absolute value (Oudeyer et al. 2007; Kanitscheider et al. 2021, arXiv:2106.14876). Averages of few
    episodes are corrected for their start at 0.

    Args:
        groups, seed, success_scores: See ``Groups``.
        fast: The weight of a new result in the fast average.
        slow: The weight of a new result in the slow average, below ``fast``.
        explore: The share of episodes for which every group is equally likely.

    Raises:
        ArgumentError: an argument is outside what is allowed.
    """

    kind = "learning progress"
    purpose = 104

    def __init__(
        self,
        groups: Sequence[Stage | Mapping[str, Any]],
        *,
        seed: int = 0,
        success_scores: Mapping[str | int, float] | None = None,
        fast: float = 0.1,
        slow: float = 0.02,
        explore: float = 0.2,
    ) -> None:
        super().__init__(groups, seed=seed, success_scores=success_scores)
        self._fast, self._slow = check_share("fast", fast), check_share("slow", slow)
        if not 0 < slow < fast < 1:
            raise ArgumentError(f"fast, slow: {fast!r}, {slow!r} were given, allowed: 0 < slow < fast < 1")
        self._explore = check_share("explore", explore)
        self._averages = [[0.0, 0.0] for _ in self._stages]

    def progress(self) -> NDArray[np.float64]:
        """Returns the absolute difference of the two averages of each group, float64 (groups,)."""
        differences = []
        for (fast, slow), count in zip(self._averages, self._episodes, strict=True):
            corrected = [
                average / (1 - (1 - weight) ** count) if count else 0.0
                for average, weight in ((fast, self._fast), (slow, self._slow))
            ]
            differences.append(abs(corrected[0] - corrected[1]))
        return np.array(differences)

    def probabilities(self) -> NDArray[np.float64]:
        """Returns the probability of each group, float64 (groups,)."""
        progress, even = self.progress(), super().probabilities()
        if not progress.sum():
            return even
        found: NDArray[np.float64] = self._explore * even + (1 - self._explore) * progress / progress.sum()
        return found

    def _learn(self, group: int, success: bool, score: float) -> None:
        averages = self._averages[group]
        for which, weight in enumerate((self._fast, self._slow)):
            averages[which] += weight * (success - averages[which])

    def _state(self) -> State:
        return {**super()._state(), "averages": [list(pair) for pair in self._averages]}

    def _load(self, state: State) -> None:
        super()._load(state)
        self._averages = [list(map(float, pair)) for pair in state["averages"]]


class PrioritizedLevelReplay(LocalSampler):
    """Replays levels by their learning potential and their staleness (Jiang et al. 2021, arXiv:2010.03934).

    A level is a start: task id, opponent and seed. The store has the ``levels`` of the highest scores. With
    probability ``replay`` times the share of the store that is full, an episode starts from a stored level,
    else from a new one. A stored level is drawn with probability (1 - staleness) P_S + staleness P_C: P_S is
    proportional to (1 / rank by score) ** (1 / temperature), P_C to the number of episodes since the level
    was played.

    The paper scores a level by the mean size of its advantage estimates, which a sampler does not see. Here
    the score is 1 - |2 m - 1|, with m the mean of one half and the scores of all episodes on that level. It
    is highest if the outcome is open, and falls to 0 for a level that is always won or always lost.

    Args:
        groups: The origin of new levels; see ``Groups``. Each is equally likely.
        seed: All draws follow from it.
        levels: The most levels kept.
        replay: The probability of a stored level once the store is full.
        temperature: See above.
        staleness: See above.

    Raises:
        ArgumentError: an argument is outside what is allowed.
    """

    kind = "prioritized level replay"
    purpose = 105
    _fixed = ("names",)

    def __init__(
        self,
        groups: Sequence[Stage | Mapping[str, Any]],
        *,
        seed: int = 0,
        levels: int = 1000,
        replay: float = 0.5,
        temperature: float = 0.1,
        staleness: float = 0.1,
    ) -> None:
        super().__init__(seed)
        self._new = Uniform(groups, seed=seed)
        self._capacity = check_least("levels", levels, 1)
        self._replay, self._staleness = check_share("replay", replay), check_share("staleness", staleness)
        if not isinstance(temperature, (int, float, np.number)) or not temperature > 0:
            raise ArgumentError(f"temperature: {temperature!r} was given, allowed: numbers above 0")
        self._temperature = float(temperature)
        # (task id, opponent, seed): [sum of scores, episodes, episode of the last]
        self._levels: dict[tuple[Any, ...], list[float]] = {}
        self._episodes = self._replays = 0

    @property
    def task_ids(self) -> list[tuple[int, int]]:
        """The ranges of all groups' task ids, for the environment's ``task_ids``."""
        return self._new.task_ids

    def probabilities(self) -> NDArray[np.float64]:
        """Returns the probability of each stored level among the replays, float64 (levels,)."""
        values = np.array([_potential(total, count) for total, count, _ in self._levels.values()])
        ranks = np.empty(len(values))
        ranks[np.argsort(-values, kind="stable")] = np.arange(1, len(values) + 1)
        # Relative to the first rank, whose power cannot vanish.
        weights = ranks ** (-1 / self._temperature)
        ages = self._episodes - np.array([last for _, _, last in self._levels.values()])
        by_age = ages / ages.sum() if ages.sum() else np.full(len(ages), 1 / len(ages))
        found: NDArray[np.float64] = (
            1 - self._staleness
        ) * weights / weights.sum() + self._staleness * by_age
        return found

    def _draw(self, generator: np.random.Generator) -> Start:
        share, which = generator.random(2)
        if share < self._replay * len(self._levels) / self._capacity:
            task_id, opponent, seed = list(self._levels)[pick(self.probabilities(), which)]
            return Start(task_id, opponent, seed, note=(1,))
        start = self._new._draw(generator)
        return Start(start.task_id, start.opponent, start.seed, note=(0,))

    def _record(self, outcome: Outcome, score: float) -> list[State]:
        start = outcome.start
        if start.replayed or len(start.note) != 1:
            return []
        self._episodes += 1
        self._replays += start.note[0]
        key = (start.task_id, start.opponent, start.seed)
        total, count, _ = self._levels.pop(key, [0.0, 0, 0])
        self._levels[key] = [total + float(score), count + 1, self._episodes]
        if len(self._levels) > self._capacity:
            # The new one leaves too if it is the least; of equals, the stalest.
            least = min(self._levels, key=lambda key: _potential(*self._levels[key][:2]))
            del self._levels[least]
        return []

    def _stats(self) -> State:
        return {
            "episodes": self._episodes,
            "levels": len(self._levels),
            "share": self._replays / self._episodes if self._episodes else 0.0,
        }

    def _state(self) -> State:
        return {
            "names": [group.name for group in self._new._stages],
            "levels": [[*key, *values] for key, values in self._levels.items()],
            "episodes": self._episodes,
            "replays": self._replays,
        }

    def _load(self, state: State) -> None:
        if len(state["levels"]) > self._capacity:
            raise SamplerError(
                f"state: {len(state['levels'])} levels were given, allowed: at most {self._capacity}"
            )
        self._levels = {tuple(level[:3]): list(level[3:]) for level in state["levels"]}
        self._episodes, self._replays = int(state["episodes"]), int(state["replays"])


def _potential(total: float, count: float) -> float:
    """Returns 1 - |2 m - 1|, with m the mean of the scores and one half."""
    return 1 - abs(2 * (total + 0.5) / (count + 1) - 1)
