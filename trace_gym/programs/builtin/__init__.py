"""The builtin generator: a task id gives a family and a level, and draws a program of these.

The same id gives the same bytes on every Python from 3.11 on. Integer arithmetic decides whether a draft fits
its level, and its counts are properties of the language (``trace_gym.admission.counting``).

A level has a band of cost, and limits on the length of a program and its output. The cost of tracing a
program is counted in points: four per doubling of its executed lines, two per doubling of its output lines,
one per doubling of the variables in scope, and one per doubling of its call depth plus one. A level is four
points, about twice the work. The points are the number of bits of
``lines**4 * output_lines**2 * live * (1 + depth)``, the same on every machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from task_gym.arguments import is_whole
from task_gym.errors import AdmissionError, check_choice
from task_gym.ids import IdRanges, check_task_id
from trace_gym.admission.measure import Measured, execute
from trace_gym.programs.base import TASKS, Program
from trace_gym.programs.builtin.families import FAMILIES
from trace_gym.programs.builtin.writer import TURNS, Draft, Template, Writer

LEVELS = range(1, 11)

LOWEST = 14
"""The base of the levels' bands of cost, in points. Level 1 allows 5 points less."""

CELLS = len(FAMILIES) * len(LEVELS)
"""Number of cells. A cell is a family at a level; an id's cell is its remainder by this number."""

NAMES = tuple(family.name for family in FAMILIES)

_PROGRAMS, _TRIES = 8, 6
"""Programs per task, at most, before the nearest is taken; and drafts per program, at most."""

_TURNS_A_POINT = 20
"""Turns of the dial per point of cost, about. It is a first guess, which measurements correct."""

_LONGEST_OUTPUT = 2500


def split(task_id: int) -> tuple[str, int]:
    """Returns the family and level of a task id."""
    level, family = divmod(check_task_id(task_id, TASKS) % CELLS, len(FAMILIES))
    return NAMES[family], level + LEVELS[0]


def cells(level: int | None = None, family: str | None = None) -> list[int]:
    """Returns the cells of a level, of a family, of both or of neither (all cells), ascending.

    Raises:
        ArgumentError: there is no such level or family.
    """
    if level is not None:
        check_choice("level", int(level) if is_whole(level) else level, LEVELS)
    if family is not None:
        check_choice("family", family, NAMES)
    triples = ((cell, *split(cell)) for cell in range(CELLS))
    return [cell for cell, name, number in triples if family in (None, name) and level in (None, number)]


def ids_of(level: int | None = None, family: str | None = None, among: Any = None) -> IdRanges:
    """Returns the task ids of a level, of a family, of both or of neither.

    Args:
        level: One of 1 … 10; None for all.
        family: One of ``NAMES``; None for all.
        among: A list of ids and (first, last) ranges to choose from; None for all ids, ascending.

    Raises:
        ArgumentError: there is no such level or family.
        TaskIdError: the list is not allowed, or has none of these ids.
    """
    named = [(0, TASKS - 1)] if among is None else among
    return IdRanges(named, TASKS, modulus=CELLS, residues=cells(level, family))


def points(measured: Measured) -> int:
    """Returns the cost of a run, in points; four points are a doubling."""
    product = max(measured.lines, 1) ** 4 * max(measured.output_lines, 1) ** 2
    return int(product * max(measured.live, 1) * (1 + measured.depth)).bit_length()


class Level:
    """The requirements on a program of a level.

    Args:
        number: The level, 1 … 10.

    Attributes:
        low: The least cost, in points.
        high: The greatest cost, in points.
        least: The fewest lines of output.
        most: The most lines of output.
        characters: The most characters of the program's text.
    """

    def __init__(self, number: int) -> None:
        self.low = LOWEST + 4 * (number - 1) if number > 1 else LOWEST - 5
        self.high = LOWEST + 4 * number - 1
        self.least = max(1, number * number // 12)
        self.most = 2 + 4 * (number - 1)
        self.characters = 400 + 280 * (number - 1)

    def misses(self, measured: Measured) -> tuple[int, int]:
        """Returns how much too costly a run is, in points, and how much too long its output, in lines.

        Below zero means too cheap or too short. (0, 0) is inside.
        """
        cost, lines = points(measured), measured.output_lines
        return cost - min(max(cost, self.low), self.high), lines - min(max(lines, self.least), self.most)


def generate(task_id: int) -> Program:
    """Returns the program of a task id, 0 … 10**11 - 1.

    Raises:
        TaskIdError: the id is not a whole number in range.
        AdmissionError: every draft failed or was too long. No such id is known.
    """
    task_id = check_task_id(task_id, TASKS)
    name, level = split(task_id)
    fitting = [
        template
        for template in FAMILIES[NAMES.index(name)].templates
        if template.lowest <= level <= template.highest
    ]
    nearest: Program | None = None
    least = 0
    for attempt in range(_PROGRAMS):
        for draft, misses in _drafts(task_id * _PROGRAMS + attempt, fitting, level):
            if nearest is None or misses < least:
                nearest, least = Program(draft.code, draft.stdin, name, level), misses
            if not misses:
                return nearest
    if nearest is None:
        raise AdmissionError(
            f"task id: {task_id} was given, for which no program of {name!r} at level {level} came out that "
            "runs, prints something and is short enough; allowed: other task ids"
        )
    return nearest


def _drafts(seed: int, fitting: list[Template], number: int) -> Iterator[tuple[Draft, int]]:
    """Turns the dial towards the level, and yields the drafts that run and are short enough.

    With each comes its distance from the level, in points plus lines of output; 0 is inside.
    """
    level = Level(number)
    low, high = 0, TURNS
    dial = TURNS * (2 * number - 1) // (2 * len(LEVELS))
    for _ in range(_TRIES):
        writer = Writer(seed, number, dial)
        written = writer.choice(fitting).write(writer)
        draft = Draft(written) if isinstance(written, str) else written
        measured = execute(draft.code, draft.stdin, line_limit=20_000, output_limit=_LONGEST_OUTPUT)
        cost, lines = level.misses(measured)
        long = len(draft.code) > level.characters
        if measured.error is None and measured.stdout.strip() and not long:
            yield draft, abs(cost) + abs(lines)
        if long or measured.error is not None or cost > 0 or (cost == 0 and lines > 0):
            high = dial
        else:
            low = dial + 1
        if low >= high:
            return
        guess = dial + _TURNS_A_POINT * ((level.low + level.high) // 2 - points(measured))
        if guess >= high:
            dial = TURNS - 1 if high == TURNS else (low + high) // 2
        elif guess < low:
            dial = 0 if low == 0 else (low + high) // 2
        else:
            dial = guess
