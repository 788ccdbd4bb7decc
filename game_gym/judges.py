"""Judges, which give every legal move of a position its value: the return to be expected after it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import pyspiel

from game_gym.aivat import find_best_response
from game_gym.exact import OPPONENTS
from game_gym.opponents.mcts import UCT_C, parse_budget
from game_gym.spec import Budget, State, Variant
from game_gym.tree import build_tree
from task_gym.errors import ArgumentError, check_choice, explain_unknown

_MEMORY_MB = 1000

Judge: TypeAlias = Callable[[State, int, int], list[float]]
"""(state, seat to move, seed) to the expected return after each legal move, in the order of ids"""


def make_judge(name: str, variant: Variant, opponent: str) -> Judge:
    """Returns a judge: "exact", "mcts:SIMS" or "mcts:SIMSxROLLOUTS".

    Raises:
        TaskGymError: there is no such judge, or it cannot judge this game.
    """
    if name == "exact":
        return _judge_exactly(variant, opponent)
    kind, _, argument = name.partition(":") if isinstance(name, str) else ("", "", "")
    if kind != "mcts" or not argument:
        raise ArgumentError(explain_unknown("judge", name, ("exact", "mcts:SIMS", "mcts:SIMSxROLLOUTS")))
    budget = parse_budget(argument, "mcts")
    assert budget is not None
    return _judge_by_search(variant, budget)


def _judge_exactly(variant: Variant, opponent: str) -> Judge:
    """Returns a judge that assumes best play after the move, against a fixed opponent.

    The value is exact, and knows nothing beyond what is seen. The games are those of ``game_gym.exact``.

    Raises:
        ArgumentError: the opponent is no fixed policy.
        SizeError: the game cannot be enumerated.
    """
    check_choice("opponent", opponent, tuple(OPPONENTS))
    tree = build_tree(variant, rules=False)
    fixed = tree.tabulate_fixed(OPPONENTS[opponent])
    known: dict[tuple[int, str], list[float]] = {}
    for seat in (0, 1):
        best = find_best_response(tree, seat, fixed)
        edges = tree.edge_probabilities([best, fixed] if seat == 0 else [fixed, best])
        # The seat's own moves are known to it.
        others = np.where(tree.movers[tree.parents] == seat, 1.0, edges)
        _, values = tree.information_values(edges, seat, tree.reach(others), returns=True)
        for situation, places in zip(tree.states, pairwise(tree.action_starts), strict=True):
            if situation.seat == seat:
                known[seat, situation.key] = values[slice(*places)].tolist()
    return lambda state, seat, seed: known[seat, state.information_state_string(seat)]


def _judge_by_search(variant: Variant, budget: Budget) -> Judge:
    """Returns a judge that makes one Monte-Carlo tree search: values are the mean returns of its moves.

    Raises:
        ArgumentError: this is no game of two seats in which one's gain is the other's loss and nothing is
            hidden. The judge raises it where there are too few simulations to try every move.
    """
    kind = variant.game.get_type()
    open_game = kind.information == pyspiel.GameType.Information.PERFECT_INFORMATION
    if not (open_game and variant.players == 2 and variant.zero_sum and not variant.pays_moves):
        raise ArgumentError(
            f"judge: 'mcts' was given for {variant.spec.name!r}, allowed there: games of two seats with "
            "alternating moves in which one's gain is the other's loss and nothing is hidden"
        )

    def judge(state: State, seat: int, seed: int) -> list[float]:
        legal = state.legal_actions()
        if budget.simulations <= len(legal):
            raise ArgumentError(
                f"judge: {budget.simulations} simulations were given, allowed: more than the "
                f"position's {len(legal)} legal actions"
            )
        rollouts = pyspiel.RandomRolloutEvaluator(budget.rollouts, seed % 2**31)
        # With its solver the search would stop at the first proven win, and leave other moves untried.
        bot = pyspiel.MCTSBot(
            variant.game, rollouts, UCT_C, budget.simulations, _MEMORY_MB, False, seed % 2**31, False
        )
        children = bot.mcts_search(state).children
        means = {child.action: child.total_reward / child.explore_count for child in children}
        return [means[action] for action in legal]

    return judge
