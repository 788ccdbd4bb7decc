"""The cost of a move of the search opponents: OpenSpiel's C++ search beside affinetes' in Python."""

from __future__ import annotations

import time
from dataclasses import dataclass

import game_gym.opponents  # noqa: F401  (registers the searches)
from benchmarks.loops import CHANCE
from game_gym.games import DECLARED, TABLE
from game_gym.prompts import SeatView
from game_gym.spec import Variant, load_variant
from task_gym.opponents import make_opponent
from task_gym.seeding import Stream

#: Every table game that can be searched.
SEARCHED = tuple(name for name in TABLE if DECLARED[name].budget is not None)

#: The contenders, by their opponent names.
SEARCHES = ("mcts", "mcts-python")

#: The least number of simulations that an opponent takes, and the factor from one attempt to the next.
LEAST, GROWTH = 2, 4


@dataclass(frozen=True)
class Search:
    """The cost of one move.

    Attributes:
        seconds: CPU seconds at the declared budget.
        simulations: The number of simulations measured.
        extrapolated: Whether the budget has more, so that the seconds are scaled up.
    """

    seconds: float
    simulations: int
    extrapolated: bool


def first_turn(variant: Variant) -> SeatView:
    """Returns the view of the first seat to move, after the first deal."""
    state, chance = variant.game.new_initial_state(), Stream(0)
    while state.current_player() == CHANCE:
        actions, probabilities = zip(*state.chance_outcomes(), strict=True)
        state.apply_action(actions[chance.weighted(probabilities)])
    view = SeatView(variant, state.current_player(), rules=False)
    view.state = state
    return view


def measure_search(opponent: str, game: str, limit: float) -> Search:
    """Measures the game's first move, with as many simulations as about ``limit`` seconds allow.

    The time is scaled in proportion to the simulations. A search that proves its move stops early, so the
    result for small games is an upper bound.

    Raises:
        ValueError: a game without a search budget.
    """
    spec = DECLARED[game]
    budget = spec.budget
    if budget is None:
        raise ValueError(f"{game} has no search budget; with one: {', '.join(SEARCHED)}")
    variant = load_variant(spec, spec.params(0))
    view = first_turn(variant)
    simulations, seconds = LEAST, 0.0
    while True:
        bot = make_opponent(f"{opponent}:{simulations}x{budget.rollouts}", variant.game, spec, view.seat)
        bot.restart(0)
        begun = time.process_time()
        bot.act(view)
        seconds = time.process_time() - begun
        if simulations == budget.simulations or GROWTH * seconds > limit:
            scale = budget.simulations / simulations
            return Search(seconds * scale, simulations, extrapolated=scale > 1)
        simulations = min(GROWTH * simulations, budget.simulations)
