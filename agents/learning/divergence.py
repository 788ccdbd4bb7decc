"""Divergence: numbers that are not finite, and the learning rate with which a run tries again."""

from __future__ import annotations

from dataclasses import dataclass

from task_gym.errors import TaskGymError

SKIPPED_AT_MOST = 3
"""Updates in a row that are not finite: with the last of them the run has diverged."""


class DivergedError(TaskGymError, FloatingPointError):
    """Losses, gradients or logits that are not finite: the step cannot be finished.

    Attributes:
        step: The number of complete steps before it.
        in_play: Whether logits were not finite while the step was played: then the weights at its beginning
            are useless, at any learning rate.
    """

    def __init__(self, message: str, step: int = 0, *, in_play: bool = False) -> None:
        super().__init__(message)
        self.step, self.in_play = step, in_play


@dataclass
class SkippedUpdates:
    """The updates that were skipped since the last one that was not, because they were not finite.

    Attributes:
        in_a_row: Their number.
    """

    in_a_row: int = 0

    def add(self, step: int) -> None:
        """Counts one more in a step.

        Raises:
            DivergedError: it is the third in a row.
        """
        self.in_a_row += 1
        if self.in_a_row >= SKIPPED_AT_MOST:
            raise DivergedError(
                f"step {step + 1}: the loss or the gradient of {self.in_a_row} updates in a row "
                "is not finite",
                step,
            )


@dataclass(frozen=True)
class Backoff:
    """The changes that divergence has made to the learning rate.

    Attributes:
        rate_factor: Factor of the learning rate.
        step: The last step that diverged, -1 if none has.
        halvings: Halvings of the rate since that step diverged first.
    """

    rate_factor: float = 1.0
    step: int = -1
    halvings: int = 0

    def after(self, step: int) -> Backoff:
        """Returns the state after the divergence of a step: half the rate."""
        earlier = self.halvings if step <= self.step else 0
        return Backoff(self.rate_factor / 2, max(step, self.step), earlier + 1)
