"""The best of a run's evaluations, and how many came since."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gamespiel.agents.runs.loggers import Row


@dataclass
class Best:
    """The best of a run's evaluations.

    Attributes:
        step: The step after which it was measured; None if there was none yet.
        value: Its measure, higher is better.
        since: Later evaluations, none of which was better.
    """

    step: int | None = None
    value: float = 0.0
    since: int = 0

    @classmethod
    def of_rows(cls, rows: Iterable[Row], metric: str, step: int) -> Best:
        """Returns the best of the evaluations before a step, from the rows of a metrics file.

        Args:
            rows: The rows. An evaluation is logged with the step that follows it.
            metric: The measure's key.
            step: The step at which the run goes on, whose own evaluation is made again.
        """
        best = cls()
        for row in rows:
            value, measured = row.get(metric), row["step"] - 1
            if isinstance(value, int | float) and measured < step:
                best.add(measured, value)
        return best

    def add(self, step: int, value: float) -> bool:
        """Counts an evaluation; returns whether it is the best so far."""
        if self.step is None or value > self.value:
            self.step, self.value, self.since = step, value, 0
            return True
        self.since += 1
        return False
