"""The sampler protocol: starts of episodes, their outcomes, and the sampler that draws and learns."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from task_gym.arguments import check_whole, is_number
from task_gym.errors import ArgumentError, SamplerError, quote
from task_gym.seeding import DRAWN_LIMIT, SEED_LIMIT

State = dict[str, Any]
"""Plain data that JSON can express."""


@dataclass(frozen=True, slots=True)
class Start:
    """The start of an episode, as a sampler asks for it.

    Attributes:
        task_id: None leaves the task to the environment.
        opponent: None leaves the opponent to the environment.
        seed: None leaves the seed to the environment.
        replayed: Whether it is the start of an earlier episode.
        note: The sampler's own numbers, which come back with the outcome.
        list_actions: Whether a game lists its legal actions; None leaves it to the environment.
    """

    task_id: int | None = None
    opponent: str | None = None
    seed: int | None = None
    replayed: bool = False
    note: tuple[int, ...] = ()
    list_actions: bool | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The options for ``env.reset(seed=start.seed, options=start.options)``."""
        options = {"task_id": self.task_id, "opponent": self.opponent, "list_actions": self.list_actions}
        return {name: value for name, value in options.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of an episode.

    Attributes:
        start: The start as it was played: with the task id, opponent and seed of the environment's info.
        game: As in the info.
        score: In [0, 1]; None after a fault.
        success: As in the info.
        result: "win", "draw", "loss", "cut" or "fault".
    """

    start: Start
    game: str
    score: float | None
    success: bool
    result: str

    @classmethod
    def of(cls, start: Start, info: Mapping[str, Any]) -> Outcome:
        """Returns the outcome of an episode from its start and the info of its end.

        Raises:
            ArgumentError: the info has no score.
        """
        if "score" not in info or "result" not in info:
            raise ArgumentError(
                "environment: the info at the end of an episode has no score and result, allowed: those of a "
                "task environment (it cuts a long game itself with max_turns, and not a wrapper inside this)"
            )
        opponent = info["opponent"]
        played = replace(
            start,
            task_id=info["task_id"],
            opponent=None if opponent == "none" else opponent,  # code tracing has none
            seed=info["seed"],
        )
        return cls(played, info["game"], info["score"], info["success"], info["result"])


class TaskSampler(Protocol):
    """Chooses the starts of episodes and learns from their outcomes.

    Draws depend only on the seed, the address and the state, and a draw changes nothing but the count of
    draws without an address. A trainer that plays many episodes at once draws by address, as
    ``draw((step, episode))``, and records the outcomes in the order of the episodes: the same run on another
    number of environments is then the same.
    """

    def draw(self, address: Sequence[int] | None = None) -> Start:
        """Returns the start at an address; None for the next of the sampler's own count."""

    def record(self, outcomes: Iterable[Outcome]) -> list[State]:
        """Applies outcomes in order; returns the events that they caused. A fault counts nowhere."""

    def stats(self) -> State:
        """Returns numbers and names to show, the same keys every time."""

    def state_dict(self) -> State:
        """Returns all that changes, as plain data."""

    def load_state_dict(self, state: State) -> None:
        """Continues exactly from a state."""


class LocalSampler:
    """A sampler's base: addresses, faults, state and a lock. It works in the process that made it.

    Args:
        seed: All draws follow from it.
    """

    kind = ""
    """The name of the state."""

    purpose = 0
    """Keeps the draws of different samplers with one seed apart."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = check_whole("seed", seed, SEED_LIMIT, ArgumentError)
        self._draws = 0
        self._process = os.getpid()
        self._lock = threading.RLock()

    def draw(self, address: Sequence[int] | None = None) -> Start:
        """Returns the start at an address; None for the next of the sampler's own count."""
        with self._lock:
            self._check_process()
            # The first number tells the two kinds apart. SeedSequence ignores zeros at the end, so it also
            # tells (1,) from (1, 0).
            key = [0, self._draws] if address is None else [1 + len(address), *address]
            sequence = np.random.SeedSequence([self._seed, self.purpose, *key])
            start = self._draw(np.random.Generator(np.random.Philox(sequence)))
            self._draws += address is None
            return start

    def record(self, outcomes: Iterable[Outcome]) -> list[State]:
        """Applies outcomes in order; returns the events that they caused. A fault counts nowhere."""
        with self._lock:
            self._check_process()
            events: list[State] = []
            for outcome in outcomes:
                if outcome.score is not None and outcome.result != "fault":
                    events += self._record(outcome, outcome.score)
            return events

    def stats(self) -> State:
        """Returns numbers and names to show, the same keys every time."""
        with self._lock:
            return self._stats()

    def state_dict(self) -> State:
        """Returns all that changes, as plain data."""
        with self._lock:
            return {"kind": self.kind, "seed": self._seed, "draws": self._draws, **self._state()}

    def load_state_dict(self, state: State) -> None:
        """Continues exactly from a state.

        Raises:
            SamplerError: it is the state of another sampler. Nothing is loaded.
        """
        with self._lock:
            mine = self.state_dict()
            if not isinstance(state, dict) or state.keys() != mine.keys():
                keys = sorted(state) if isinstance(state, dict) else state
                raise SamplerError(f"state: {keys} was given, allowed: a state with {sorted(mine)}")
            for name in ("kind", "seed", *self._fixed):
                if state[name] != mine[name]:
                    raise SamplerError(
                        f"state: {name} {state[name]!r} was given, allowed: this sampler's, {mine[name]!r}"
                    )
            self._load(state)
            self._draws = int(state["draws"])

    _fixed: tuple[str, ...] = ()
    """Further keys of the state in which another sampler's differs."""

    def _draw(self, generator: np.random.Generator) -> Start:
        raise NotImplementedError

    def _record(self, outcome: Outcome, score: float) -> list[State]:
        raise NotImplementedError

    def _stats(self) -> State:
        raise NotImplementedError

    def _state(self) -> State:
        raise NotImplementedError

    def _load(self, state: State) -> None:
        raise NotImplementedError

    def _check_process(self) -> None:
        # A worker's copy would learn only from its own episodes, unseen by anyone.
        if os.getpid() != self._process:
            raise SamplerError(
                f"sampler: a {type(self).__name__} of process {self._process} was used in process "
                f"{os.getpid()}, allowed: the process that made it; share(sampler) returns one for all"
            )

    def __getstate__(self) -> State:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: State) -> None:
        vars(self).update(state)
        self._lock = threading.RLock()


def check_success_scores(mapping: Mapping[str | int, float] | None) -> dict[str | int, float]:
    """Returns the success scores by game or task id, or raises ArgumentError unless all are in [0, 1)."""
    if mapping is not None and not isinstance(mapping, Mapping):
        raise ArgumentError(
            f"success_scores: {quote(mapping)} was given, allowed: a mapping of games or task ids to scores"
        )
    scores = dict(mapping or {})
    for name, score in scores.items():
        check_share(f"success_scores: {name!r}", score)
        if score == 1:
            raise ArgumentError(
                f"success_scores: {name!r}: {score!r} was given, allowed: numbers from 0 to below 1, because "
                "a success has a score above it"
            )
    return scores


def succeeded(outcome: Outcome, scores: Mapping[str | int, float]) -> bool:
    """Returns whether an episode is a success, by its task's own success score if there is one."""
    for name in (outcome.start.task_id, outcome.game):
        if name is not None and name in scores:
            return outcome.score is not None and outcome.score > scores[name]
    return outcome.success


def check_share(what: str, value: Any) -> float:
    """Returns a number in [0, 1] as a float, or raises ArgumentError."""
    if not is_number(value) or not 0 <= value <= 1:
        raise ArgumentError(f"{what}: {value!r} was given, allowed: numbers from 0 to 1")
    return float(value)


def pick(weights: Sequence[float] | NDArray[np.float64], uniform: float) -> int:
    """Returns a place with a probability proportional to its weight, for a uniform in [0, 1)."""
    ends = np.cumsum(weights)
    # The last place has no sum above it that rounding could reach.
    return min(int(np.searchsorted(ends, uniform * ends[-1], side="right")), len(ends) - 1)


def check_weights(what: str, weights: Any) -> dict[str, float]:
    """Returns weights by name, or raises ArgumentError unless there are some, all of them above 0."""
    if not isinstance(weights, Mapping) or not weights:
        raise ArgumentError(f"{what}: {weights!r} was given, allowed: a mapping of names to weights")
    for name, weight in weights.items():
        if not is_number(weight) or not weight > 0:
            raise ArgumentError(f"{what}: {name!r}: {weight!r} was given, allowed: numbers above 0")
    return {name: float(weight) for name, weight in weights.items()}


def draw_opponent(opponent: str | Mapping[str, float] | None, generator: np.random.Generator) -> str | None:
    """Returns the opponent that a mixture of names and weights draws; any other is drawn by itself."""
    if not isinstance(opponent, Mapping):
        return opponent
    return list(opponent)[pick(list(opponent.values()), generator.random())]


def draw_seed(generator: np.random.Generator) -> int:
    """Returns a seed for an environment, each equally often."""
    return int(generator.random() * DRAWN_LIMIT)
