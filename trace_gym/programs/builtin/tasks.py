"""Task ids of the builtin programs: which family and level an id has, and which ids a restriction leaves."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, SupportsIndex, overload

from task_gym import ids
from task_gym.errors import check_choice
from trace_gym.programs.base import TASKS
from trace_gym.programs.builtin.families import FAMILIES
from trace_gym.programs.builtin.levels import LEVELS

#: Cells: a family at a level. The cell of an id is its remainder.
CELLS = len(FAMILIES) * len(LEVELS)

NAMES = tuple(family.name for family in FAMILIES)


def check_task_id(task_id: Any) -> int:
    """``task_id`` as an int, or a TaskIdError."""
    return ids.check_task_id(task_id, TASKS)


def _whole(value: Any) -> bool:
    """Whether it is an integer of Python's or NumPy's, and not a bool."""
    return isinstance(value, SupportsIndex) and not isinstance(value, bool)


def split(task_id: int) -> tuple[str, int]:
    """Task id to (family, level)."""
    level, family = divmod(check_task_id(task_id) % CELLS, len(FAMILIES))
    return NAMES[family], level + LEVELS[0]


class TaskIds(Sequence[int]):
    """The task ids of a level, of a family, of both or of neither, ascending and never written out.

    Args:
        level: One of 1 … 10; None for all.
        family: One of ``NAMES``; None for all.

    Raises:
        ArgumentError: no such level or family.
    """

    def __init__(self, level: int | None = None, family: str | None = None) -> None:
        if level is not None:
            check_choice("level", level, LEVELS)
        if family is not None:
            check_choice("family", family, NAMES)
        self.cells = tuple(
            cell
            for cell in range(CELLS)
            if (family is None or split(cell)[0] == family) and (level is None or split(cell)[1] == level)
        )

    def __len__(self) -> int:
        return TASKS // CELLS * len(self.cells)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        position = range(len(self))[index]
        variation, cell = divmod(position, len(self.cells))
        return variation * CELLS + self.cells[cell]

    def __contains__(self, task_id: Any) -> bool:
        return _whole(task_id) and 0 <= task_id < TASKS and task_id % CELLS in self.cells

    def below(self, task_id: int) -> int:
        """How many of them are less than ``task_id``: a range of ids is a range of positions."""
        variation, cell = divmod(min(max(task_id, 0), TASKS), CELLS)
        return variation * len(self.cells) + bisect_left(self.cells, cell)
