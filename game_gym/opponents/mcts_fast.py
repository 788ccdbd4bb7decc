"""The opponent ``mcts-fast``: about as strong as ``mcts``, for fewer CPU seconds. For training.

``mcts`` looks at a position by the mean of many rollouts. The same seconds bring more if every simulation has
one: the tree grows deeper, and a bad move is left sooner. How many simulations then play as well was found by
play of the two searches against each other (``benchmarks/results/equal_searches.json``). A game without such
evidence has no ``mcts-fast``. Scores are given against ``mcts`` itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from game_gym.opponents.mcts import UCT_C, MctsOpponent, check_search
from game_gym.spec import Budget
from task_gym.errors import OpponentError
from task_gym.opponents import Seating, register_opponent

NAME = "mcts-fast"


class FastSearch(NamedTuple):
    """A search that was found to be as strong as a game's ``mcts``."""

    budget: Budget
    uct_c: float = UCT_C


FAST: Mapping[str, FastSearch] = {}
"""The searches by game. Each has a confirmed match in ``benchmarks/results/equal_searches.json``."""


def find_fast(seating: Seating) -> FastSearch:
    """Returns the fast search of a game.

    Raises:
        OpponentError: the game has none, or cannot be searched.
    """
    check_search(seating, NAME)
    found = FAST.get(seating.spec.name)
    if found is None:
        raise OpponentError(
            f"opponent: {NAME!r} was given for {seating.spec.name!r}, in which no faster search was found to "
            f"be as strong as 'mcts'; allowed: 'mcts' there, {NAME!r} in {', '.join(FAST)}"
        )
    return found


class FastMctsOpponent(MctsOpponent):
    """Searches the game from the true state, as ``mcts`` does, with a cheaper budget of the same strength.

    Its moves follow from the same seeds, and nothing of a tree is kept between moves. In games with hidden
    information it cheats, as ``mcts`` does.
    """

    def __init__(self, seating: Seating) -> None:
        fast = find_fast(seating)
        super().__init__(seating, fast.budget, fast.uct_c)


register_opponent(
    NAME,
    FastMctsOpponent,
    searches=True,  # in OpenSpiel's C++, which lets Python's lock go
)
