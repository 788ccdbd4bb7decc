"""Task ids, and the set of them that an environment draws from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from task_gym.errors import ArgumentError
from task_gym.ids import check_task_id
from trace_gym.programs.base import TASKS
from trace_gym.programs.builtin import ids_of


class TaskSet:
    """The tasks that an environment may draw. Ranges of ids are never expanded.

    Args:
        task_id: One task id. At most one of ``task_id`` and ``task_ids`` is given; without both, all ids.
        task_ids: A list of ids and (first, last) ranges, both ends included.
        source: The source of the programs.
        level: Only ids of this level, 1 … 10 (builtin programs).
        family: Only ids of this family (builtin programs).

    Attributes:
        ids: The task ids.

    Raises:
        ArgumentError: both are given, there is no such level or family, or the source has none.
        TaskIdError: an id is out of range, or no id has the level and family.
    """

    def __init__(
        self,
        task_id: int | None = None,
        task_ids: Sequence[int | Sequence[int]] | None = None,
        source: str = "builtin",
        level: int | None = None,
        family: str | None = None,
    ) -> None:
        if task_id is not None and task_ids is not None:
            raise ArgumentError("task: task_id and task_ids were given, allowed: at most one of them")
        if source != "builtin" and (level is not None or family is not None):
            raise ArgumentError(
                f"level, family: {level!r} and {family!r} were given with source {source!r}, "
                "allowed: with source 'builtin' only, whose programs have levels and families"
            )
        among = task_ids if task_id is None else [check_task_id(task_id, TASKS)]
        self.ids = ids_of(level, family, among=among)
        self._kind = ", ".join(
            f"{name} {value}" for name, value in (("level", level), ("family", family)) if value is not None
        )

    def draw(self, generator: Callable[[], np.random.Generator]) -> int:
        """Returns a task id, drawn uniformly. For a single id the generator is not called."""
        return self.ids.draw(generator)

    def __contains__(self, task_id: Any) -> bool:
        return task_id in self.ids

    def __str__(self) -> str:
        return f"{self.ids}{f' of {self._kind}' if self._kind else ''}"
