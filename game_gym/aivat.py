"""Estimates of a seat's expected score that vary less than the score: AIVAT.

A game's score is luck and skill. The probabilities of some moves are known: chance's always, and those of a
seat whose policy is known. The luck of such a move can be taken out: the value after it is compared with the
mean value over all moves that could have been. The value function is arbitrary but fixed before play.
Whatever it is, the luck has mean 0, so the estimate has the mean of the score. Here it is the exact expected
score if known policies go on, and a seat whose policy is not known plays a best response from there on. If
neither is known, both play uniformly at random.

If only one seat's policy is unknown, and that seat acts by its own information, all histories that it cannot
tell apart are equally likely but for the known probabilities. The estimate is then the mean over them: that
of the hands that could have been held, and not only of the one that was.

Burch, Schmid, Moravčík, Morrill and Bowling, "AIVAT: A New Variance Reduction Technique for Agent Evaluation
in Imperfect Information Games" (AAAI 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyspiel

from game_gym.exact import split_by_seat, uniform
from game_gym.tree import Floats, GameTree, Table, Whole
from game_gym.walk import TERMINAL


@dataclass(frozen=True, slots=True, eq=False)
class Estimator:
    """AIVAT estimates of one seat's score, by the node in which a game ended.

    Attributes:
        tree: The game.
        seat: The seat.
        corrections: The luck taken out on the way to each node, float64 (nodes,).
        estimates: The estimates at terminal nodes, float64 (nodes,); NaN elsewhere.
        bounds: The least and the greatest estimate, of games that were given up too.
    """

    tree: GameTree
    seat: int
    corrections: Floats
    estimates: Floats
    bounds: tuple[float, float]

    def estimate(self, history: Sequence[int], score: float) -> float:
        """Returns the estimate of a game.

        Args:
            history: Its actions, chance's too.
            score: The seat's score. It counts if the game was given up before its end: giving up is a move of
                a seat whose policy is not known.

        Raises:
            KeyError: the game has no such history.
        """
        _, _, node = self.tree.find_turns(history, self.seat)
        if self.tree.movers[node] == TERMINAL:
            return float(self.estimates[node])
        return float(score + self.corrections[node])


def make_estimator(
    tree: GameTree, seat: int, tables: Sequence[Table | None], *, blind: bool = True
) -> Estimator:
    """Returns the estimator of a seat's expected score.

    Args:
        tree: The game.
        seat: The seat.
        tables: By seat, the policy if it is known; None if it is not.
        blind: Whether a seat whose policy is not known acts by what it can see alone. A search that reads the
            true state does not.
    """
    edges = tree.edge_probabilities(tables)
    values = tree.back_up(tree.edge_probabilities(assume_policies(tree, tables)), seat)
    corrections = _sum_corrections(tree, edges, values)
    ends = tree.movers == TERMINAL
    estimates = np.where(ends, tree.scores[:, seat] + corrections, np.nan)
    unknown = [player for player, table in enumerate(tables) if table is None]
    if blind and len(unknown) == 1:
        estimates[ends] = _average_alike(tree, unknown[0], edges, estimates)[ends]
    elif not unknown:  # nothing is left to chance
        estimates[ends] = tree.back_up(edges, seat)[0]
    given_up = corrections[~ends]
    low = min(float(estimates[ends].min()), float(given_up.min()))
    high = max(float(estimates[ends].max()), 1 + float(given_up.max()))
    return Estimator(tree, seat, corrections, estimates, (low, high))


def assume_policies(tree: GameTree, tables: Sequence[Table | None]) -> list[Table]:
    """Returns the policies by which the value function expects both seats to play.

    Args:
        tree: The game.
        tables: By seat, the policy if it is known.

    Returns:
        A known policy is itself. An unknown one is a best response to the known one, because who is worth
        comparing plays well. If both are unknown, both play uniformly at random.
    """
    even = tree.tabulate(uniform)
    policies: list[Table] = []
    for seat, table in enumerate(tables):
        other = tables[1 - seat]
        policies.append(
            table if table is not None else even if other is None else find_best_response(tree, seat, other)
        )
    return policies


def find_best_response(tree: GameTree, seat: int, other: Table) -> Table:
    """Returns a best response to the policy of the other seat; uniform where that policy never leads."""
    fixed = split_by_seat(tree.states, other)[1 - seat]
    solver = pyspiel.TabularBestResponse(tree.variant.game, seat, fixed)
    chosen = solver.get_best_response_actions()
    table = []
    for state in tree.states:
        best = chosen.get(state.key) if state.seat == seat else None
        even = [1 / len(state.legal)] * len(state.legal)
        table.append(even if best is None else [float(action == best) for action in state.legal])
    return table


def _sum_corrections(tree: GameTree, edges: Floats, values: Floats) -> Floats:
    """Returns, by node, the sum over known moves of the mean value over all moves less the value after."""
    known, after = ~np.isnan(edges), values[tree.children]
    means = np.bincount(tree.parents[known], weights=(edges * after)[known], minlength=len(values))
    corrections = np.zeros(len(values))
    for level in tree.levels[:-1]:
        level_edges = tree.edges_of(level)
        terms = np.where(known[level_edges], means[tree.parents[level_edges]] - after[level_edges], 0.0)
        corrections[tree.children[level_edges]] = corrections[tree.parents[level_edges]] + terms
    return corrections


def _average_alike(tree: GameTree, unknown: int, edges: Floats, estimates: Floats) -> Floats:
    """Returns the estimates at terminal nodes as means over what the unknown seat cannot tell apart.

    The weights are the known probabilities on the way. A group that has none is never met if the tables are
    right; it keeps its estimates.
    """
    alike = _group_alike(tree, unknown)
    ends = tree.movers == TERMINAL
    weights = tree.reach(np.where(np.isnan(edges), 1.0, edges)) * ends
    totals = np.bincount(alike, weights=weights)
    sums = np.bincount(alike, weights=weights * np.where(ends, estimates, 0.0))
    means = sums / np.where(totals > 0, totals, 1.0)
    return np.where(totals[alike] > 0, means[alike], estimates)


def _group_alike(tree: GameTree, seat: int) -> Whole:
    """Returns a number by node, the same for nodes in which a seat met the same states and acted alike."""
    numbers = np.zeros(len(tree.movers), dtype=np.int64)
    groups: dict[tuple[int, int, int], int] = {}
    for level in tree.levels[:-1]:
        level_edges = tree.edges_of(level)
        numbers[tree.children[level_edges]] = numbers[tree.parents[level_edges]]
        for edge in np.flatnonzero(tree.movers[tree.parents[level_edges]] == seat) + level_edges.start:
            parent = tree.parents[edge]
            key = int(numbers[parent]), int(tree.state_of[parent]), int(tree.actions[edge])
            numbers[tree.children[edge]] = groups.setdefault(key, len(groups) + 1)
    return numbers
