"""What a level means: a band of cost, and how long a program and its output may be.

The cost of tracing a program is counted in points: four for each doubling of its executed lines, two for each
doubling of its output lines, one for each doubling of the variables in scope and one for each doubling of its
call depth (plus one). A level is four points: about twice the work. The points are the number of bits of
``lines**4 * output_lines**2 * live * (1 + depth)``: whole numbers, the same on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass

from trace_gym.measure import Measured

LEVELS = range(1, 11)


def points(measured: Measured) -> int:
    """The cost of a run, in points; each point is a quarter of a doubling."""
    product = max(measured.lines, 1) ** 4 * max(measured.output_lines, 1) ** 2
    return int(product * max(measured.live, 1) * (1 + measured.depth)).bit_length()


@dataclass(frozen=True, slots=True)
class Level:
    """What a program of a level has to be.

    Attributes:
        low, high: Its cost in points, both included.
        least, most: Its lines of output.
        characters: The most its text may have; of its output, a half more than that.
    """

    low: int
    high: int
    least: int
    most: int
    characters: int

    def misses(self, measured: Measured) -> tuple[int, int]:
        """How much too costly a run is, in points, and how much too long its output, in lines.

        Below zero: too cheap, too short. (0, 0) is inside.
        """
        cost, lines = points(measured), measured.output_lines
        return cost - min(max(cost, self.low), self.high), lines - min(max(lines, self.least), self.most)


def level_of(number: int) -> Level:
    """The level of this number, 1 … 10."""
    return Level(
        low=LOWEST + 4 * (number - 1) if number > 1 else LOWEST - 5,
        high=LOWEST + 4 * number - 1,
        least=max(1, number * number // 12),
        most=2 + 4 * (number - 1),
        characters=400 + 280 * (number - 1),
    )


#: The least cost of a program of level 1, in points.
LOWEST = 14
