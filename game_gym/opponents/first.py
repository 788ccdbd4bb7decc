"""The opponent ``first``, which plays the legal action with the lowest id."""

from __future__ import annotations

from task_gym.opponents import Seating, SeatView, register_opponent


class FirstOpponent:
    """Plays the first legal action: deterministic, for tests and for readable games."""

    asks_only_for_actions = True

    def __init__(self, seating: Seating) -> None:
        pass

    def restart(self, seed: int) -> None:
        """Does nothing, because nothing is random here."""

    def act(self, view: SeatView) -> int:
        """Returns the lowest legal id."""
        return view.legal_actions()[0]


register_opponent("first", FirstOpponent)
