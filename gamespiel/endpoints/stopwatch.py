"""The time that an opponent's searches take in one game."""

from __future__ import annotations

import time
from typing import Any

from task_gym.opponents import Opponent, make_opponent

SEARCHES = ("mcts", "mcts-fast", "mcts-python", "ismcts")
"""The opponents that search."""


class Stopwatch:
    """Makes the opponents of one game, and measures those that search."""

    def __init__(self) -> None:
        self._timed: list[Timed] = []

    def make_bot(self, text: str, game: Any, spec: Any, seat: int) -> Opponent:
        """Returns what ``make_opponent`` returns, measured if it searches."""
        bot = make_opponent(text, game, spec, seat)
        if text.partition(":")[0] not in SEARCHES:
            return bot
        timed = Timed(bot, seat)
        self._timed.append(timed)
        return timed

    def to_dict(self, seat: int) -> dict[str, Any]:
        """Returns ``mcts_timing`` under upstream's names, in seconds; nothing if no opponent searches.

        Args:
            seat: The model's, on which no opponent plays.
        """
        bots = [bot for bot in self._timed if bot.seat != seat]
        if not bots:
            return {}
        seconds, calls = sum(bot.seconds for bot in bots), sum(bot.calls for bot in bots)
        timing = {
            "total_mcts_time": seconds,
            "total_mcts_calls": calls,
            "avg_mcts_time_per_call": seconds / calls if calls else 0.0,
            "num_mcts_bots": len(bots),
        }
        return {"mcts_timing": timing}


class Timed:
    """An opponent, measured.

    Attributes:
        seat: Its seat.
        seconds: Seconds that its moves took. As upstream, one that was given up does not count.
        calls: Its moves.
    """

    def __init__(self, bot: Opponent, seat: int) -> None:
        self._bot, self.seat = bot, seat
        self.seconds, self.calls = 0.0, 0

    def restart(self, seed: int) -> None:
        """Begins an episode."""
        self._bot.restart(seed)

    def act(self, view: Any) -> int:
        """Returns the opponent's action."""
        began = time.perf_counter()
        action = self._bot.act(view)
        self.seconds += time.perf_counter() - began
        self.calls += 1
        return action
