"""Task ids of the builtin programs: an id's family and level, and the ids of a family or level."""

from __future__ import annotations

from typing import Any

from task_gym.arguments import is_whole
from task_gym.errors import check_choice
from task_gym.ids import IdRanges, check_task_id
from trace_gym.programs.base import TASKS
from trace_gym.programs.builtin.families import FAMILIES
from trace_gym.programs.builtin.levels import LEVELS

CELLS = len(FAMILIES) * len(LEVELS)
"""Number of cells. A cell is a family at a level; an id's cell is its remainder by this number."""

NAMES = tuple(family.name for family in FAMILIES)


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
