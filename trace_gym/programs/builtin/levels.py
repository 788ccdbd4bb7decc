"""The levels: each has a band of cost, and limits on the length of a program and its output.

The cost of tracing a program is counted in points: four per doubling of its executed lines, two per doubling
of its output lines, one per doubling of the variables in scope, and one per doubling of its call depth plus
one. A level is four points, about twice the work. The points are the number of bits of
``lines**4 * output_lines**2 * live * (1 + depth)``, the same on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from trace_gym.admission.measure import Measured

LEVELS = range(1, 11)


def points(measured: Measured) -> int:
    """Returns the cost of a run, in points; four points are a doubling."""
    product = max(measured.lines, 1) ** 4 * max(measured.output_lines, 1) ** 2
    return int(product * max(measured.live, 1) * (1 + measured.depth)).bit_length()


@dataclass(frozen=True, slots=True)
class Level:
    """The requirements on a program of a level.

    Attributes:
        low: The least cost, in points.
        high: The greatest cost, in points.
        least: The fewest lines of output.
        most: The most lines of output.
        characters: The most characters of the program's text.
    """

    low: int
    high: int
    least: int
    most: int
    characters: int

    def misses(self, measured: Measured) -> tuple[int, int]:
        """Returns how much too costly a run is, in points, and how much too long its output, in lines.

        Below zero means too cheap or too short. (0, 0) is inside.
        """
        cost, lines = points(measured), measured.output_lines
        return cost - min(max(cost, self.low), self.high), lines - min(max(lines, self.least), self.most)


def level_of(number: int) -> Level:
    """Returns the level of this number, 1 … 10."""
    return Level(
        low=LOWEST + 4 * (number - 1) if number > 1 else LOWEST - 5,
        high=LOWEST + 4 * number - 1,
        least=max(1, number * number // 12),
        most=2 + 4 * (number - 1),
        characters=400 + 280 * (number - 1),
    )


LOWEST = 14
"""The base of the levels' bands of cost, in points. Level 1 allows 5 points less."""
