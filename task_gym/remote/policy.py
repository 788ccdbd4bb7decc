"""What the two HTTP clients share, that of sessions and that of model endpoints: repeats, and the most bytes.

``task_gym.remote.bounds`` applies the second to an httpx client, and refuses compressed responses.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

MOST = 32 << 20
"""The most bytes of a response. A conversation of a whole game, or a reply of 32,000 pieces, is in it."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a request is tried, and the pauses between.

    Attributes:
        tries: Times that a request is tried if its failure may pass.
        first: Seconds between the first and the second try. They double from try to try.
        longest: The most seconds between two tries.
    """

    tries: int
    first: float
    longest: float = inf

    def pause(self, tried: int, asked: float = 0.0) -> float:
        """Returns the seconds to wait after so many tries (from 1); longer if the server asks for it."""
        # In this order, so that "nan" is no wish.
        return min(max(self.first * 2.0 ** (tried - 1), asked), self.longest)


SESSIONS = Retries(tries=4, first=0.2)
"""Calls of sessions that can be repeated safely."""
