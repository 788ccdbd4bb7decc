"""``ismcts``: named, not built yet."""

from __future__ import annotations

from task_gym.errors import NotBuiltError
from task_gym.opponents import Opponent, Seating, register_opponent


def _make(seating: Seating) -> Opponent:
    raise NotBuiltError(
        "opponent: 'ismcts' was given, which is not built yet; allowed now: 'random', 'mcts', 'first'"
    )


register_opponent("ismcts", _make, usage="ismcts[:SIMS] (not built yet)", takes_argument=True)
