"""CPU seconds of a search's move, measured once: the estimate is the same on every machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from game_gym.opponents.mcts import parse_budget
from game_gym.spec import Variant
from task_gym.opponents import opponent_searches, playing_name

#: CPU seconds of a move of "mcts" at the declared budget, means over games: one number, or one per value of
#: the parameter that decides it. Measured in November 2026 against random play.
_SECONDS: Mapping[str, float | tuple[str, Mapping[int, float]]] = {
    "liars_dice": ("numdice", {1: 0.0019, 5: 0.124}),
    "leduc_poker": 0.0032,
    "gin_rummy": 3.0,
    "othello": 3.8,
    "backgammon": 9.8,
    "hex": ("board_size", {5: 0.158, 7: 0.464, 9: 1.15, 11: 2.15}),
    "clobber": ("rows", {5: 0.293, 6: 1.31, 7: 3.04}),
    "hearts": 0.17,
    "euchre": 0.053,
    "dots_and_boxes": ("num_rows", {3: 0.522, 4: 1.5, 5: 3.01}),
    "go": ("board_size", {5: 0.087, 7: 0.371}),
    "chess": 5.0,
    "checkers": 3.4,
    "quoridor": ("board_size", {7: 5.3, 9: 6.1}),
    "phantom_ttt": 0.216,
    "bridge": 0.0011,
    "amazons": ("board_size", {6: 0.0252, 8: 0.099, 10: 0.202}),
    "oware": ("num_seeds_per_house", {3: 0.123, 4: 0.172, 5: 0.231}),
    "tic_tac_toe": 0.0031,
    "kuhn_poker": 0.00004,
}

#: The seconds of "mcts-fast" over those of "mcts" with the same budget, from benchmarks/results/matches.json.
FAST_SHARES: Mapping[str, float] = {
    "backgammon": 0.01,
    "checkers": 0.016,
    "chess": 0.042,
    "gin_rummy": 0.0043,
    "othello": 0.024,
    "quoridor": 0.025,
}

ROLLOUT_SECONDS = 1e-6
"""CPU seconds of a rollout in a game that was not measured: less than in most games that were."""

_SEARCHES = ("mcts", "mcts-fast", "mcts-python", "ismcts")


def estimate_move(opponent: str, variant: Variant) -> float:
    """Returns about how many CPU seconds a move of an opponent takes, or less: 0 if it does not search.

    It follows from the names and the budget alone. A budget below the declared one takes its share. A greater
    one counts as the declared one, because a search ends when it has solved the game. Searches in Python
    count as ``mcts``; they took 0.4 to 20 times as long. A search that a user registered is infinitely dear.
    """
    if variant.players < 2:
        return 0.0
    playing = playing_name(opponent, variant.game)
    if not opponent_searches(playing):
        return 0.0
    name, _, argument = playing.partition(":")
    if name not in _SEARCHES:
        return inf
    declared, measured = variant.spec.budget, _find_seconds(variant)
    budget = parse_budget(argument, name) or declared
    if budget is None:
        return 0.0
    rollouts = budget.simulations * budget.rollouts
    if measured is None or declared is None:
        return rollouts * ROLLOUT_SECONDS
    # In other games it is an error when it is made, which says more than one here would.
    share = FAST_SHARES.get(variant.spec.name, 1.0) if name == "mcts-fast" else 1.0
    return measured * share * min(1.0, rollouts / (declared.simulations * declared.rollouts))


def estimate_mean(opponent: str, variants: Sequence[Variant]) -> float:
    """Returns the mean of ``estimate_move`` over several games."""
    return sum(estimate_move(opponent, variant) for variant in variants) / len(variants)


def _find_seconds(variant: Variant) -> float | None:
    """Returns the measured seconds; between two sizes those of the smaller one, and 0 below all."""
    measured = _SECONDS.get(variant.spec.name)
    if not isinstance(measured, tuple):
        return measured
    parameter, sizes = measured
    return max((seconds for size, seconds in sizes.items() if size <= variant.params[parameter]), default=0.0)
