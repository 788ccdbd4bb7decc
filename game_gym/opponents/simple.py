"""Opponents that only ask for their legal actions: ``random`` and ``first``."""

from __future__ import annotations

from task_gym.opponents import Seating, SeatView, register_opponent
from task_gym.seeding import Stream


class FirstOpponent:
    """Plays the first legal action: deterministic, for tests and for readable games."""

    def __init__(self, seating: Seating) -> None:
        pass

    def restart(self, seed: int) -> None:
        """Does nothing, because nothing is random here."""

    def act(self, view: SeatView) -> int:
        """Returns the lowest legal id."""
        return view.legal_actions()[0]


register_opponent("first", FirstOpponent)


class UniformOpponent:
    """Upstream's uniform bot, draw for draw: ``RandomState(root + 2).choice(legal_actions)``."""

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
