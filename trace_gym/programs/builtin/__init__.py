"""The builtin generator: a task id gives a family and a level, and draws a program of these.

The same id gives the same bytes on every Python from 3.11 on. Integer arithmetic decides whether a draft fits
its level, and its counts are properties of the language (``trace_gym.admission.counting``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from task_gym.errors import AdmissionError
from task_gym.ids import check_task_id
from trace_gym.admission.measure import Measured, execute
from trace_gym.programs.base import TASKS, Program
from trace_gym.programs.builtin.families import FAMILIES
from trace_gym.programs.builtin.levels import LEVELS, level_of, points
from trace_gym.programs.builtin.tasks import CELLS, NAMES, ids_of, split
from trace_gym.programs.builtin.writer import TURNS, Draft, Template, Writer

__all__ = ["CELLS", "FAMILIES", "LEVELS", "NAMES", "TASKS", "Trial", "generate", "ids_of", "make", "split"]

_PROGRAMS, _TRIES = 8, 6
"""Programs per task, at most, before the nearest is taken; and drafts per program, at most."""

_TURNS_A_POINT = 20
"""Turns of the dial per point of cost, about. It is a first guess, which measurements correct."""

_LONGEST_OUTPUT = 2500


@dataclass(frozen=True, slots=True)
class Trial:
    """A generated program with its measurements.

    Attributes:
        program: The program.
        measured: The measurements of its run.
        misses: Its distance from its level, in points plus lines of output; 0 is inside.
    """

    program: Program
    measured: Measured
    misses: int


def generate(task_id: int) -> Program:
    """Returns the program of a task id, 0 … 10**11 - 1.

    Raises:
        TaskIdError: the id is not a whole number in range.
        AdmissionError: every draft failed or was too long. No such id is known.
    """
    return make(task_id).program


def make(task_id: int) -> Trial:
    """Returns the program of a task id with its measurements; see ``generate``."""
    task_id = check_task_id(task_id, TASKS)
    name, level = split(task_id)
    fitting = [
        template
        for template in FAMILIES[NAMES.index(name)].templates
        if template.lowest <= level <= template.highest
    ]
    nearest: Trial | None = None
    for attempt in range(_PROGRAMS):
        for draft, measured, misses in _drafts(task_id * _PROGRAMS + attempt, fitting, level):
            if nearest is None or misses < nearest.misses:
                nearest = Trial(Program(draft.code, draft.stdin, name, level), measured, misses)
            if not misses:
                return nearest
    if nearest is None:
        raise AdmissionError(
            f"task id: {task_id} was given, for which no program of {name!r} at level {level} came out that "
            "runs, prints something and is short enough; allowed: other task ids"
        )
    return nearest


def _drafts(seed: int, fitting: list[Template], number: int) -> Iterator[tuple[Draft, Measured, int]]:
    """Turns the dial towards the level, and yields the drafts that run and are short enough."""
    level = level_of(number)
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
            yield draft, measured, abs(cost) + abs(lines)
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
