"""Judges, which give every legal move of a position its value: the return to be expected after it."""

from __future__ import annotations

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


class ExactJudge:
    """Assumes best play after the move, against a fixed opponent, and nothing known beyond what is seen.

    The value is exact. The games are those of ``game_gym.exact``.

    Args:
        variant: The game.
        opponent: "random" or "first".

    Raises:
        ArgumentError: the opponent is no fixed policy.
        SizeError: the game cannot be enumerated.
    """

    def __init__(self, variant: Variant, opponent: str) -> None:
        check_choice("opponent", opponent, tuple(OPPONENTS))
        tree = build_tree(variant, rules=False)
        fixed = tree.tabulate_fixed(OPPONENTS[opponent])
        self._values: dict[tuple[int, str], list[float]] = {}
        for seat in (0, 1):
            best = find_best_response(tree, seat, fixed)
            edges = tree.edge_probabilities([best, fixed] if seat == 0 else [fixed, best])
            # The seat's own moves are known to it.
            others = np.where(tree.movers[tree.parents] == seat, 1.0, edges)
            _, values = tree.information_values(edges, seat, tree.reach(others), returns=True)
            for known, places in zip(tree.states, pairwise(tree.action_starts), strict=True):
                if known.seat == seat:
                    self._values[seat, known.key] = values[slice(*places)].tolist()

    def values(self, state: State, seat: int, seed: int) -> list[float]:
        """Returns the expected return after each legal move, in the order of ids."""
        return self._values[seat, state.information_state_string(seat)]


class SearchJudge:
    """Estimates values by one Monte-Carlo tree search from the position: the mean returns of its moves.

    Args:
        variant: A game of two seats in which one's gain is the other's loss and nothing is hidden.
        budget: Simulations and rollouts.

    Raises:
        ArgumentError: the game is another one.
    """

    def __init__(self, variant: Variant, budget: Budget) -> None:
        kind = variant.game.get_type()
        open_game = kind.information == pyspiel.GameType.Information.PERFECT_INFORMATION
        if not (open_game and variant.players == 2 and variant.zero_sum and not variant.pays_moves):
            raise ArgumentError(
                f"judge: 'mcts' was given for {variant.spec.name!r}, allowed there: games of two seats with "
                "alternating moves in which one's gain is the other's loss and nothing is hidden"
            )
        self._game, self._budget = variant.game, budget

    def values(self, state: State, seat: int, seed: int) -> list[float]:
        """Returns the mean return of each legal move in the search, in the order of ids.

        Raises:
            ArgumentError: there are too few simulations to try every move.
        """
        legal = state.legal_actions()
        if self._budget.simulations <= len(legal):
            raise ArgumentError(
                f"judge: {self._budget.simulations} simulations were given, allowed: more than the "
                f"position's {len(legal)} legal actions"
            )
        rollouts = pyspiel.RandomRolloutEvaluator(self._budget.rollouts, seed % 2**31)
        # With its solver the search would stop at the first proven win, and leave other moves untried.
        bot = pyspiel.MCTSBot(
            self._game, rollouts, UCT_C, self._budget.simulations, _MEMORY_MB, False, seed % 2**31, False
        )
        means = {
            child.action: child.total_reward / child.explore_count
            for child in bot.mcts_search(state).children
        }
        return [means[action] for action in legal]


Judge: TypeAlias = ExactJudge | SearchJudge


def make_judge(name: str, variant: Variant, opponent: str) -> Judge:
    """Returns a judge: "exact", "mcts:SIMS" or "mcts:SIMSxROLLOUTS".

    Raises:
        TaskGymError: there is no such judge, or it cannot judge this game.
    """
    if name == "exact":
        return ExactJudge(variant, opponent)
    kind, _, argument = name.partition(":") if isinstance(name, str) else ("", "", "")
    if kind != "mcts" or not argument:
        raise ArgumentError(explain_unknown("judge", name, ("exact", "mcts:SIMS", "mcts:SIMSxROLLOUTS")))
    budget = parse_budget(argument, "mcts")
    assert budget is not None
    return SearchJudge(variant, budget)
