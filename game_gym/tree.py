"""A small game as arrays: every history, who moves there, and what follows.

Values of all histories are then a few operations on arrays, whatever the policies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyspiel
from numpy.typing import NDArray

from game_gym.exact import (
    InformationState,
    Policy,
    check_size,
    information_states,
    tabulate,
    uniform,
)
from game_gym.score import seat_scores
from game_gym.spec import State, Variant

CHANCE = int(pyspiel.PlayerId.CHANCE)
TERMINAL = int(pyspiel.PlayerId.TERMINAL)

Floats: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class GameTree:
    """The histories of a game of two seats, level by level; node 0 is the empty history.

    Attributes:
        variant: The game.
        states: Its information states.
        parents: The history before, by node, int64 (nodes,); -1 of node 0.
        actions: The action that leads from the parent to the node, int64 (nodes,); -1 of node 0.
        places: The place of that action among the parent's legal ones, int64 (nodes,).
        movers: The seat to move, ``CHANCE`` or ``TERMINAL``, int64 (nodes,).
        state_of: The information state of the seat to move, as an index of ``states``, int64 (nodes,); -1
            where no seat moves.
        chance: The probability of the action by chance, float64 (nodes,); 1 where the parent is not chance.
        scores: The seats' scores at terminal nodes, float64 (nodes, 2); 0 elsewhere.
        levels: Slices of the nodes of each length.
    """

    variant: Variant
    states: tuple[InformationState, ...]
    parents: Whole
    actions: Whole
    places: Whole
    movers: Whole
    state_of: Whole
    chance: Floats
    scores: Floats
    levels: tuple[slice, ...]
    _children: dict[tuple[int, int], int] = field(repr=False)

    def find(self, history: Sequence[int]) -> int:
        """Returns the node of a history.

        Raises:
            KeyError: there is no such history.
        """
        node = 0
        for action in history:
            node = self.find_child(node, action)
        return node

    def find_child(self, node: int, action: int) -> int:
        """Returns the node that follows a node by an action; ``KeyError`` if there is none."""
        return self._children[node, action]

    def edge_probabilities(self, tables: Sequence[Sequence[Sequence[float]] | None]) -> Floats:
        """Returns the probability of each node's last action, float64 (nodes,); NaN where it is not known.

        Args:
            tables: By seat, the probabilities of the legal actions in every information state; None for a
                seat whose policy is not known.
        """
        edges = self.chance.copy()
        before = self.parents.clip(0)
        for seat, table in enumerate(tables):
            moved = (self.movers[before] == seat) & (self.parents >= 0)
            if table is None:
                edges[moved] = np.nan
                continue
            sizes = [len(row) for row in table]
            starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
            flat = np.asarray([value for row in table for value in row], dtype=np.float64)
            edges[moved] = flat[starts[self.state_of[before[moved]]] + self.places[moved]]
        return edges

    def reach(self, edges: Floats) -> Floats:
        """Returns the product of the edges on the way to each node, float64 (nodes,)."""
        products = np.ones(len(edges))
        for level in self.levels[1:]:
            products[level] = products[self.parents[level]] * edges[level]
        return products

    def back_up(self, edges: Floats, seat: int) -> Floats:
        """Returns a seat's expected score from each node on, float64 (nodes,)."""
        values = self.scores[:, seat].copy()
        for level in reversed(self.levels[1:]):
            values += np.bincount(
                self.parents[level], weights=edges[level] * values[level], minlength=len(values)
            )
        return values

    def information_values(self, edges: Floats, seat: int) -> tuple[Floats, Floats]:
        """Returns what a seat's information states and actions there are worth, in scores.

        Each is the mean over the histories that the seat cannot tell apart, weighted by their reach, its own
        moves included. NaN where no history is reached.

        Args:
            edges: The probability of each node's last action.
            seat: The seat.

        Returns:
            Values of the information states, float64 (states,), and of each state's legal actions, one state
            after the other, float64 (actions,). Those of the other seat's are NaN.
        """
        values, reach = self.back_up(edges, seat), self.reach(edges)
        before = self.parents.clip(0)
        moved = np.flatnonzero((self.parents >= 0) & (self.movers[before] == seat))
        place = self.action_starts[self.state_of[before[moved]]] + self.places[moved]
        actions = _weighted_means(place, values[moved], reach[before[moved]], int(self.action_starts[-1]))
        nodes = np.flatnonzero(self.movers == seat)
        return _weighted_means(self.state_of[nodes], values[nodes], reach[nodes], len(self.states)), actions

    @property
    def action_starts(self) -> Whole:
        """Where each information state's legal actions begin in a row of all, int64 (states + 1,)."""
        return np.concatenate([[0], np.cumsum([len(state.legal) for state in self.states])]).astype(np.int64)

    def expected_scores(self, tables: Sequence[Sequence[Sequence[float]]]) -> tuple[float, float]:
        """Returns both seats' exact expected scores, one policy per seat."""
        edges = self.edge_probabilities(tables)
        return float(self.back_up(edges, 0)[0]), float(self.back_up(edges, 1)[0])

    def tabulate(self, policy: Policy, conversing: bool = False) -> list[list[float]]:
        """Returns a policy's probabilities in every information state; it is asked once."""
        return tabulate(self.states, policy, conversing)

    def uniform_edges(self) -> Floats:
        """Returns ``edge_probabilities`` of uniform play on both seats."""
        table = self.tabulate(uniform)
        return self.edge_probabilities([table, table])


def _weighted_means(index: Whole, values: Floats, weights: Floats, count: int) -> Floats:
    """Returns the weighted mean of the values of each index below ``count``; NaN where no weight is."""
    total = np.bincount(index, weights=weights, minlength=count)
    with np.errstate(invalid="ignore"):
        means: Floats = np.bincount(index, weights=weights * values, minlength=count) / total
    return means


_Row: TypeAlias = tuple[int, int, int, int, int, float, list[float]]
"""The fields of a node, from ``parents`` to ``scores``."""


def build_tree(
    variant: Variant,
    rules: bool = True,
    most: int | None = None,
    conversation: str | None = None,
    *,
    list_actions: bool = True,
    named: bool = False,
) -> GameTree:
    """Returns a game as arrays.

    Args:
        variant: The game.
        rules: Whether the texts of its information states begin with the rules.
        most: The most histories that it may have; see ``game_gym.exact.information_states``.
        conversation: See ``game_gym.exact.information_states``.
        list_actions: See there.
        named: See there.

    Raises:
        SizeError: the game cannot be enumerated.
    """
    check_size(variant, most)
    states = information_states(variant, rules, most, conversation, list_actions=list_actions, named=named)
    index = {(state.seat, state.key): i for i, state in enumerate(states)}
    rows: list[_Row] = []
    levels: list[slice] = []
    children: dict[tuple[int, int], int] = {}
    waiting: list[tuple[State, int, int, int, float]] = [(variant.game.new_initial_state(), -1, -1, 0, 1.0)]
    while waiting:
        start, below = len(rows), []
        for state, parent, action, place, probability in waiting:
            node, mover, known = len(rows), int(state.current_player()), -1
            ends = [0.0, 0.0]
            if mover == TERMINAL:
                ends = seat_scores(variant, state.returns())
            elif mover != CHANCE:
                known = index[mover, state.information_state_string(mover)]
            children[parent, action] = node
            rows.append((parent, action, place, mover, known, probability, ends))
            below += [(state.child(a), node, a, i, p) for i, (a, p) in enumerate(_list_moves(state))]
        levels.append(slice(start, len(rows)))
        waiting = below
    columns = list(zip(*rows, strict=True))
    parents, actions, places, movers, state_of = (
        np.asarray(column, dtype=np.int64) for column in columns[:5]
    )
    chance, scores = (np.asarray(column, dtype=np.float64) for column in columns[5:])
    return GameTree(
        variant=variant,
        states=states,
        parents=parents,
        actions=actions,
        places=places,
        movers=movers,
        state_of=state_of,
        chance=chance,
        scores=scores,
        levels=tuple(levels),
        _children=children,
    )


def _list_moves(state: State) -> list[tuple[int, float]]:
    """Returns the actions of a state with their probability by chance, 1 where a seat moves."""
    if state.is_terminal():
        return []
    if state.is_chance_node():
        return [(int(action), float(probability)) for action, probability in state.chance_outcomes()]
    return [(int(action), 1.0) for action in state.legal_actions()]
