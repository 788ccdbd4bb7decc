"""The protocol of samplers, which answer requests in this process or in another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from gamespiel.agents.models.adapters import Adapters
from gamespiel.agents.sampling.decisions import Decision, Request


class Sampler(Protocol):
    """Answers requests under adapters by name.

    It needs no gradients and no critic. ``BASE`` is always known; every other name has to be published.
    """

    @property
    def tokens_read(self) -> int:
        """Returns the tokens read since the start, each repetition counted; 0 if it is not known."""

    def sample(self, requests: Sequence[Request]) -> list[Decision]:
        """Returns a decision per request, in order. A call that fails leaves nothing behind.

        Raises:
            UnknownAdaptersError: a request names adapters that were not published.
            NotFiniteError: the model's logits are not finite.
            MemoryLimitError: not even one request fits into memory.
        """

    def distribution(self, requests: Sequence[Request]) -> list[npt.NDArray[np.float64]]:
        """Returns the probability of each legal action, one float64 array per request, in its trie's order.

        Raises:
            ValueError: a request's text is free.
            UnknownAdaptersError: as ``sample`` does.
            MemoryLimitError: as ``sample`` does.
        """

    def publish(self, name: str, adapters: Adapters) -> None:
        """Makes adapters known by a name, in the place of those that had it.

        The tensors do not change afterwards, except those of ``NEWEST``, which are the ones that learn: they
        are published again after every change.
        """

    def forget(self, name: str) -> None:
        """Forgets a name; one that is not known is no error."""

    def end_episodes(self) -> None:
        """Forgets what it keeps of conversations between their turns; a later turn is read as a whole."""

    def check_gap(self, gap: float) -> None:
        """Takes how far the newest adapters' log-probabilities, as it gave them, are from the scorer's.

        Args:
            gap: The mean absolute difference over ratio units, in nats.

        Raises:
            TaskGymError: it is too much: another model sampled than the one that learns.
        """
