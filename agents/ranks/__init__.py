"""Ranks: the processes that learn one policy together. One alone, the usual case, costs nothing more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from gamespiel.agents.launch import Launch
from task_gym.errors import TaskGymError

T = TypeVar("T")


class RanksError(TaskGymError):
    """Ranks that cannot learn together."""


class RankFailedError(RanksError):
    """A rank that met an error, which therefore ends all of them."""


class RankLostError(RanksError):
    """A rank that has gone without a word, or that did not answer in time."""


class RanksDifferError(RanksError):
    """Ranks that should have the same weights and counters, and do not."""


class Ranks:
    """The ranks of a learner, as one of them sees the others; this one is alone.

    All ranks call the same methods in the same order. Nothing that a rank decides alone may reach the
    learner's state: it is gathered first, and every rank goes on from what all have gathered.

    Attributes:
        launch: What the launcher says of this process.
        rank: The number of this process.
        size: How many there are.
        seconds: Seconds in which this rank has waited for others and for what they sent.
        while_waiting: Called again and again while this rank waits; it may raise.
    """

    def __init__(self, launch: Launch | None = None) -> None:
        self.launch = launch or Launch()
        self.rank, self.size = self.launch.rank, self.launch.size
        self.seconds = 0.0
        self.while_waiting: Callable[[], None] = lambda: None

    @property
    def leads(self) -> bool:
        """Returns whether this is the rank that writes files, evaluates and shows the run."""
        return self.rank == 0

    def take_share(self, items: Sequence[T]) -> Sequence[T]:
        """Returns this rank's items: those whose position is its number, modulo the number of ranks."""
        return items

    # -- objects -------------------------------------------------------------------------------------------

    def gather(self, value: T) -> list[T]:
        """Returns every rank's value, in the ranks' order."""
        return [value]

    def share_work(self, work: Callable[[], T]) -> list[T]:
        """Returns what ``work`` returned on every rank.

        Raises:
            RankFailedError: it raised on another rank. An error of ours is raised again as it is.
        """
        return [work()]

    def lead(self, work: Callable[[], T]) -> T:
        """Returns what ``work`` returned on the first rank, which alone does it.

        Raises:
            RankFailedError: as ``share_work`` does.
        """
        return work()

    def agree(self, flag: bool) -> bool:
        """Returns whether a flag is set on any rank."""
        return flag

    def total(self, number: int) -> int:
        """Returns the sum of all ranks' numbers."""
        return number

    def require_same(self, what: str, value: bytes) -> None:
        """Raises RanksDifferError if ranks have different values."""

    # -- tensors -------------------------------------------------------------------------------------------

    def join(self, parts: Sequence[Tensor], device: torch.device | str) -> Tensor:
        """Returns the parts of all ranks, (n,) in all, one after the other, in the ranks' order."""
        return torch.cat(list(parts))

    def reserve(self, parameters: Iterable[nn.Parameter]) -> None:
        """Makes the memory in which gradients are summed, for later calls of ``add_gradients``."""

    def add_gradients(self) -> None:
        """Gives the parameters of ``reserve`` the sum of all ranks' gradients, or none if no rank has one."""

    # -- one word, which is no exchange --------------------------------------------------------------------

    def ask_stop(self) -> None:
        """Says that this rank is asked to stop, so that others play no longer in vain."""

    @property
    def is_stop_asked(self) -> bool:
        """Returns whether another rank has said so. Ranks may hear of it at different moments."""
        return False

    def lead_once(self, key: str, work: Callable[[], T]) -> T:
        """Returns what ``work`` returned on the first rank, which others find by its key, now or later.

        The first rank waits for nobody, and may call this alone. What it raises is raised on those that ask.

        Raises:
            RankFailedError: as ``share_work`` does.
        """
        return work()

    def withdraw(self, key: str) -> None:
        """Makes a later question for a key wait until the first rank answers it again."""


ALONE = Ranks()
"""One process that learns alone."""
