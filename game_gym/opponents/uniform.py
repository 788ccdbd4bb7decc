"""The opponent ``random``, which plays every legal action equally often."""

from __future__ import annotations

from task_gym.opponents import Seating, SeatView, register_opponent
from task_gym.seeding import Stream


class UniformOpponent:
    """Upstream's uniform bot, draw for draw: ``RandomState(root + 2).choice(legal_actions)``."""

    asks_only_for_actions = True
    last_stream = 2

    def __init__(self, seating: Seating) -> None:
        self._stream = Stream()

    def restart(self, seed: int) -> None:
        """Begins an episode from a bot's root."""
        self._stream.seed(seed + self.last_stream)

    def act(self, view: SeatView) -> int:
        """Returns a legal action, drawn uniformly."""
        return self._stream.choice(view.legal_actions())


register_opponent("random", UniformOpponent)
