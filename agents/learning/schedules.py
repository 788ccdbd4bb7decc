"""Schedules: numbers as functions of the progress remaining (1 at the start, 0 at the end)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from task_gym.errors import check_choice

Schedule = Callable[[float], float]

SHAPES: Mapping[str, Schedule] = {
    "constant": lambda remaining: 1.0,
    "linear": lambda remaining: remaining,
    "cosine": lambda remaining: 0.5 - 0.5 * math.cos(math.pi * remaining),
}


@dataclass(frozen=True)
class Shaped:
    """A function of the progress remaining that falls in a shape of ``SHAPES``.

    Attributes:
        shape: The shape's name.
        initial: The value at the start.
        end: The value at which the shape is 0.
    """

    shape: str
    initial: float
    end: float = 0.0

    def __post_init__(self) -> None:
        check_choice("schedule", self.shape, tuple(SHAPES))

    def __call__(self, remaining: float) -> float:
        """Returns the value."""
        return self.end + (self.initial - self.end) * SHAPES[self.shape](remaining)


def schedule(shape: str, initial: float, end: float = 0.0) -> Schedule:
    """Returns a shape of ``SHAPES``, by name, that falls from ``initial`` to ``end``.

    Raises:
        ArgumentError: the name is unknown.
    """
    return Shaped(shape, initial, end)


def schedule_of(given: float | Schedule | None, shape: str, initial: float) -> float | Schedule:
    """Returns a function if one is given, else the hyper-parameter's number in its shape."""
    if callable(given):
        return given
    return initial if shape == "constant" else schedule(shape, initial)
