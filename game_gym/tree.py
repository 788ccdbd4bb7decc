"""A small game as arrays: every history, who moves there, and what follows.

Values of all histories are then a few operations on arrays, whatever the policies.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyspiel
from numpy.typing import NDArray

from game_gym.conversation import show_conversation
from game_gym.prompts import render
from game_gym.score import seat_scores
from game_gym.spec import State, Variant
from game_gym.walk import CHANCE, TERMINAL, check_size, find_position_key, walk_histories
from task_gym.errors import ArgumentError
from task_gym.wrappers.common import ask_for_name

KEPT_TREES = 2
"""Trees that stay in memory, because runs and evaluations ask for the same ones again."""

KEPT_STATES = 100_000
"""Information states of a tree that are kept once written: the texts of millions take gigabytes."""

Policy = Callable[[Sequence[str], Sequence[Sequence[int]]], Sequence[NDArray[np.float64]]]
"""(texts, legal) to one float64 array of probabilities per text, aligned with its legal actions."""

Table: TypeAlias = Sequence[Sequence[float]]
"""A policy: the probabilities of the legal actions in every information state of a ``GameTree``."""

TOLERANCE = 1e-6
"""The largest distance from 1 of the sum of a policy's probabilities."""

Floats: TypeAlias = NDArray[np.float64]
Whole: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class InformationState:
    """A situation as its player knows it.

    Attributes:
        key: OpenSpiel's information state string.
        seat: The seat to move.
        text: The observation.
        legal: Legal action ids, ascending.
    """

    key: str
    seat: int
    text: str
    legal: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class InformationStates:
    """The information states of a game, each written from its first history when it is asked for.

    Attributes:
        variant: The game.
        nodes: The first node of each state.
        entering: The edge by which each node was found; that of node 0 does not count.
        parents: The node that an edge leads from.
        actions: Its action.
        write: (state, its seat to move, the seat's earlier questions and answers) to the text.
        recalls: Whether texts need those questions and answers.
    """

    variant: Variant
    nodes: NDArray[Any]
    entering: NDArray[Any]
    parents: NDArray[Any]
    actions: NDArray[Any]
    write: Callable[[State, int, list[tuple[str, str]]], str]
    recalls: bool
    _cache: dict[int, InformationState] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[InformationState]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, number: int) -> InformationState:
        known = self._cache.get(number)
        if known is None:
            known = self._find(int(self.nodes[number]))
            if len(self._cache) < KEPT_STATES:
                self._cache[number] = known
        return known

    def _find(self, node: int) -> InformationState:
        """Returns the information state of the seat to move at a node."""
        history = list[int]()
        while node:
            edge = self.entering[node]
            history.append(int(self.actions[edge]))
            node = int(self.parents[edge])
        game = self.variant.game
        state: State = game.new_initial_state()
        history.reverse()
        for action in history:
            state.apply_action(action)
        seat = state.current_player()
        turns = self._list_turns(history, seat) if self.recalls else []
        text = self.write(state, seat, turns)
        return InformationState(
            state.information_state_string(seat), seat, text, tuple(state.legal_actions())
        )

    def _list_turns(self, history: Sequence[int], seat: int) -> list[tuple[str, str]]:
        """Returns a seat's questions and answers on the way."""
        state: State = self.variant.game.new_initial_state()
        turns = list[tuple[str, str]]()
        for action in history:
            if state.current_player() == seat:
                turns.append((str(self.write(state, seat, turns)), str(action)))
            state.apply_action(action)
        return turns


@dataclass(frozen=True, slots=True, eq=False)
class GameTree:
    """The histories of a game of two seats, level by level; node 0 is the empty history.

    Where nothing is hidden, equal positions may be one node, to which several edges lead. Otherwise edge k
    leads to node k + 1.

    Attributes:
        variant: The game.
        states: Its information states, in the order of a depth-first walk, which is the same everywhere.
        first_nodes: The first node of each, integers (states,).
        movers: The seat to move, ``CHANCE`` or ``TERMINAL``, integers (nodes,).
        state_of: The information state of the seat to move, as an index of ``states``, integers (nodes,); -1
            where no seat moves.
        scores: The seats' scores at terminal nodes, float64 (nodes, 2); 0 elsewhere.
        returns: Their returns, likewise.
        parents: The node that an edge leads from, ascending, integers (edges,).
        children: The node that it leads to, integers (edges,).
        actions: Its action, integers (edges,).
        places: The place of that action among the parent's legal ones, integers (edges,).
        chance: The probability of the action by chance, float64 (edges,); 1 where the parent is not chance.
        first_edges: The first edge from each node, int64 (nodes + 1,).
        levels: Slices of the nodes of each length.
    """

    variant: Variant
    states: InformationStates
    first_nodes: NDArray[Any]
    movers: NDArray[Any]
    state_of: NDArray[Any]
    scores: Floats
    returns: Floats
    parents: NDArray[Any]
    children: NDArray[Any]
    actions: NDArray[Any]
    places: NDArray[Any]
    chance: Floats
    first_edges: Whole
    levels: tuple[slice, ...]

    def find_turns(self, history: Iterable[int], seat: int) -> tuple[list[int], list[int], int]:
        """Returns a seat's turns in a game, and the node where it ends.

        Args:
            history: Every action of the game, chance's too.
            seat: The seat.

        Returns:
            The information state of each turn, its action's place among the legal ones, and the node.

        Raises:
            KeyError: an action is not possible where it was made.
        """
        states, places, node = list[int](), list[int](), 0
        for action in history:
            start, end = self.first_edges[node : node + 2]
            matches = np.flatnonzero(self.actions[start:end] == action)
            if not len(matches):
                raise KeyError((node, action))
            edge = start + matches[0]
            if self.movers[node] == seat:
                states.append(int(self.state_of[node]))
                places.append(int(self.places[edge]))
            node = int(self.children[edge])
        return states, places, node

    def edges_of(self, level: slice) -> slice:
        """Returns the edges that lead from the nodes of a level."""
        return slice(self.first_edges[level.start], self.first_edges[level.stop])

    @property
    def action_starts(self) -> Whole:
        """The place of each information state's first legal action in a row of all, int64 (states + 1,)."""
        return np.concatenate([[0], np.cumsum(self.action_counts)]).astype(np.int64)

    @property
    def action_counts(self) -> Whole:
        """The number of legal actions in each information state, int64 (states,)."""
        counts: Whole = self.first_edges[self.first_nodes + 1] - self.first_edges[self.first_nodes]
        return counts

    def edge_probabilities(self, tables: Sequence[Table | None]) -> Floats:
        """Returns the probability of each edge's action, float64 (edges,); NaN where it is not known.

        Args:
            tables: By seat, the probabilities of the legal actions in every information state; None for a
                seat whose policy is not known.
        """
        edges, starts = self.chance.copy(), self.action_starts
        for seat, table in enumerate(tables):
            moved = np.flatnonzero(self.movers[self.parents] == seat)
            if table is None:
                edges[moved] = np.nan
                continue
            flat = np.fromiter((value for row in table for value in row), np.float64, int(starts[-1]))
            edges[moved] = flat[starts[self.state_of[self.parents[moved]]] + self.places[moved]]
        return edges

    def reach(self, edges: Floats) -> Floats:
        """Returns the probability of each node, given those of the edges, float64 (nodes,)."""
        products = np.zeros(len(self.movers))
        products[0] = 1.0
        for level, below in pairwise(self.levels):
            level_edges = self.edges_of(level)
            products[below] = np.bincount(
                self.children[level_edges] - below.start,
                weights=products[self.parents[level_edges]] * edges[level_edges],
                minlength=below.stop - below.start,
            )
        return products

    def back_up(self, edges: Floats, seat: int, *, returns: bool = False) -> Floats:
        """Returns a seat's expected score, or return, from each node on, float64 (nodes,)."""
        values = (self.returns if returns else self.scores)[:, seat].copy()
        for level in reversed(self.levels[:-1]):
            values[level] += self._sum_edges(level, edges, values)
        return values

    def _sum_edges(self, level: slice, edges: Floats, values: Floats) -> Floats:
        """Returns the sum over each node's edges of probability times value, for the nodes of a level."""
        level_edges = self.edges_of(level)
        sums: Floats = np.bincount(
            self.parents[level_edges] - level.start,
            weights=edges[level_edges] * values[self.children[level_edges]],
            minlength=level.stop - level.start,
        ).astype(np.float64, copy=False)
        return sums

    def information_values(
        self, edges: Floats, seat: int, reach: Floats | None = None, *, returns: bool = False
    ) -> tuple[Floats, Floats]:
        """Returns what a seat's information states and actions there are worth, in scores or returns.

        Each is the mean over the histories that the seat cannot tell apart, weighted by their reach. NaN
        where no history is reached.

        Args:
            edges: The probability of each edge's action.
            seat: The seat.
            reach: The weight of each node; None for its probability, the seat's own moves included.
            returns: Whether the values are returns.

        Returns:
            Values of the information states, float64 (states,), and of each state's legal actions, one state
            after the other, float64 (actions,). Those of the other seat's are NaN.
        """
        values = self.back_up(edges, seat, returns=returns)
        reach = self.reach(edges) if reach is None else reach
        moved = np.flatnonzero(self.movers[self.parents] == seat)
        starts = self.action_starts
        place = starts[self.state_of[self.parents[moved]]] + self.places[moved]
        actions = _average_by_index(
            place, values[self.children[moved]], reach[self.parents[moved]], int(starts[-1])
        )
        nodes = np.flatnonzero(self.movers == seat)
        return _average_by_index(self.state_of[nodes], values[nodes], reach[nodes], len(self.states)), actions

    def best_response(self, edges: Floats, seat: int) -> Floats:
        """Returns the probabilities of the edges if a seat plays its best response to the other's policy.

        All histories of an information state must have one length: ``has_one_level_per_state``.

        Args:
            edges: The probability of each edge's action; those of the seat itself do not count.
            seat: The seat.
        """
        seat_edges = self.movers[self.parents] == seat
        others = np.where(seat_edges, 1.0, edges)
        reach, starts = self.reach(others), self.action_starts
        values = self.returns[:, seat].copy()
        for level in reversed(self.levels[:-1]):
            part = self.edges_of(level)
            mine = np.flatnonzero(seat_edges[part]) + part.start
            if len(mine):
                # A state's histories are all in this level, so the sums over them decide its best action.
                places = starts[self.state_of[self.parents[mine]]] + self.places[mine]
                first, last = int(places.min()), int(places.max()) + 1
                weights = reach[self.parents[mine]] * values[self.children[mine]]
                totals = np.bincount(places - first, weights=weights, minlength=last - first).astype(
                    np.float64
                )
                others[mine] = self._is_best(places, totals, first)
            values[level] += self._sum_edges(level, others, values)
        return others

    def _is_best(self, places: Whole, totals: Floats, first: int) -> Floats:
        """Returns 1 for edges of the best action of their state, the first of equals, and 0 for others."""
        index = np.arange(first, first + len(totals))
        state_of = np.searchsorted(self.action_starts, index, side="right") - 1
        ranked = np.lexsort((-totals, state_of))
        chosen = np.zeros(len(totals))
        chosen[ranked[np.unique(state_of[ranked], return_index=True)[1]]] = 1.0
        return chosen[places - first]

    def has_one_level_per_state(self) -> bool:
        """Returns whether all histories of each information state have the same length."""
        lengths = np.repeat(np.arange(len(self.levels)), [level.stop - level.start for level in self.levels])
        nodes = np.flatnonzero(self.state_of >= 0)
        return bool((lengths[self.first_nodes][self.state_of[nodes]] == lengths[nodes]).all())

    def tabulate(
        self, policy: Policy, conversing: bool = False, numbers: Iterable[int] | None = None
    ) -> list[list[float]]:
        """Returns a policy's probabilities of the legal actions in each information state.

        Args:
            policy: Called once, with each distinct observation and its legal actions.
            conversing: Whether the texts end conversations: equal texts may then end different ones.
            numbers: The information states, as indices of ``states``; None for all.

        Raises:
            ArgumentError: the answers are no probabilities.
        """
        prompts: dict[Hashable, int] = {}
        texts, legal, asked = list[str](), list[tuple[int, ...]](), array("i")
        for state in self.states if numbers is None else (self.states[number] for number in numbers):
            number = prompts.setdefault(_key_of(state, conversing), len(prompts))
            if number == len(texts):
                texts.append(state.text)
                legal.append(state.legal)
            asked.append(number)
        answers = policy(texts, [list(actions) for actions in legal])
        if len(answers) != len(texts):
            raise ArgumentError(
                f"policy: {len(answers)} answers were given, allowed: {len(texts)}, one a text"
            )
        rows = [_check_answer(answer, actions) for answer, actions in zip(answers, legal, strict=True)]
        return [rows[number] for number in asked]

    def tabulate_fixed(self, chances: Callable[[int], list[float]]) -> Table:
        """Returns the table of a policy that knows only how many actions are legal."""
        counts = self.action_counts
        rows = {int(count): chances(int(count)) for count in np.unique(counts)}
        return [rows[count] for count in counts.tolist()]

    def uniform_edges(self) -> Floats:
        """Returns ``edge_probabilities`` of uniform play on both seats."""
        table = self.tabulate_fixed(lambda count: [1 / count] * count)
        return self.edge_probabilities([table, table])


def _key_of(state: InformationState, conversing: bool) -> Hashable:
    """Returns what a policy can tell of a state."""
    return (state.seat, state.key) if conversing else (state.text, state.legal)


def _check_answer(answer: Any, legal: tuple[int, ...]) -> list[float]:
    """Returns probabilities as a list that sums to 1, or raises ArgumentError."""
    probabilities = np.asarray(answer, dtype=np.float64)
    good = probabilities.shape == (len(legal),) and bool(np.all(probabilities >= 0))
    if not good or abs(float(probabilities.sum()) - 1) > TOLERANCE:
        raise ArgumentError(
            f"policy: {answer!r} was given for legal actions {list(legal)}, allowed: {len(legal)} "
            "probabilities of at least 0 that sum to 1"
        )
    rescaled: list[float] = (probabilities / probabilities.sum()).tolist()
    return rescaled


def _average_by_index(index: NDArray[Any], values: Floats, weights: Floats, count: int) -> Floats:
    """Returns the weighted mean of the values of each index below ``count``; NaN where no weight is."""
    total = np.bincount(index, weights=weights, minlength=count)
    with np.errstate(invalid="ignore"):
        means: Floats = np.bincount(index, weights=weights * values, minlength=count) / total
    return means


# -- building ----------------------------------------------------------------------------------------------


def build_tree(
    variant: Variant,
    rules: bool = True,
    most: int | None = None,
    conversation: str | None = None,
    *,
    list_actions: bool = True,
    named: bool = False,
    merge: bool = False,
) -> GameTree:
    """Returns a game as arrays. Trees that were asked for last are kept.

    Args:
        variant: The game.
        rules: Whether the texts begin with the rules.
        most: The most histories that the game may have, None for ``game_gym.walk.MAX_STATES``.
        conversation: None for texts that are complete in themselves, or the protocol, "openenv" or
            "evaluate", in whose layout they are ``task_gym.wrappers.ConversationText``. A seat recalls all
            that it saw and did, so an information state has one conversation.
        list_actions: Whether the texts list the legal actions.
        named: Whether the texts ask for names, and are ``task_gym.wrappers.NamedText``; without a
            conversation only.
        merge: Whether equal positions of a game in which nothing is hidden are one node, and one information
            state. The game's declaration says by ``state_key`` when positions are equal.

    Raises:
        SizeError: the game has other than two seats, simultaneous moves, no names of information states, or
            more than ``most`` histories.
    """
    if most is not None:
        check_size(variant, most, conversation, merge=merge)
    return _build_tree(variant, rules, conversation, list_actions, named, merge)


@lru_cache(maxsize=KEPT_TREES)
def _build_tree(
    variant: Variant, rules: bool, conversation: str | None, list_actions: bool, named: bool, merge: bool
) -> GameTree:
    position_of = find_position_key(variant, conversation) if merge else None
    is_open = variant.game.get_type().information == pyspiel.GameType.Information.PERFECT_INFORMATION
    numbers: tuple[dict[str, int], ...] = {}, {}
    ends: dict[tuple[float, ...], int] = {}
    depths, movers, state_of, end_of = array("i"), array("b"), array("i"), array("i")
    parents, children, actions, places, chance = array("i"), array("i"), array("i"), array("i"), array("d")
    first_nodes, found_by = array("i"), array("i")
    for visit in walk_histories(variant, None, position_of):
        state, mover, known, end = visit.state, visit.mover, -1, 0
        if visit.parent >= 0:
            parents.append(visit.parent)
            children.append(visit.node)
            actions.append(visit.action)
            places.append(visit.place)
            chance.append(visit.probability)
        if not visit.is_new:
            continue
        if mover == TERMINAL:
            end = ends.setdefault(tuple(state.returns()), len(ends) + 1)
        elif mover != CHANCE:
            known = len(first_nodes)
            if position_of is None:
                name = state.information_state_string(mover)
                # A name that is the whole history belongs to this node alone, and need not be kept.
                if not is_open or name != state.history_str():
                    known = numbers[mover].setdefault(name, known)
            if known == len(first_nodes):
                first_nodes.append(visit.node)
        depths.append(visit.depth)
        movers.append(mover)
        state_of.append(known)
        end_of.append(end)
        found_by.append(len(parents) - 1)
    del numbers
    # The walk went depth first. Nodes are sorted by length here, and edges by the nodes they lead from.
    order = np.argsort(np.asarray(depths), kind="stable").astype(np.int32)
    rank = np.argsort(order).astype(np.int32)
    sources = rank[np.asarray(parents, dtype=np.int32)]
    by_source = np.lexsort((np.asarray(places), sources)).astype(np.int32)
    bounds = np.searchsorted(np.asarray(depths)[order], np.arange(max(depths) + 2)).tolist()
    outcome = np.asarray(end_of)[order]
    parents_of, actions_of = sources[by_source], np.asarray(actions)[by_source]
    firsts = rank[np.asarray(first_nodes)]
    entering = np.concatenate([[0], np.argsort(by_source)[np.asarray(found_by)[order[1:]]]]).astype(np.int32)

    def write(state: State, seat: int, turns: list[tuple[str, str]]) -> str:
        if conversation is not None:
            return show_conversation(variant, state, seat, turns, protocol=conversation, rules=rules)
        text = render(variant, state, seat, rules, list_actions)
        if not named:
            return text
        return ask_for_name(text, variant.choices(state, seat, state.legal_actions())[0])

    return GameTree(
        variant=variant,
        states=InformationStates(
            variant, firsts, entering, parents_of, actions_of, write, conversation is not None
        ),
        first_nodes=firsts,
        movers=np.asarray(movers)[order],
        state_of=np.asarray(state_of)[order],
        scores=np.array([(0.0, 0.0), *(seat_scores(variant, end) for end in ends)])[outcome],
        returns=np.array([(0.0, 0.0), *ends])[outcome],
        parents=parents_of,
        children=rank[np.asarray(children, dtype=np.int32)][by_source],
        actions=actions_of,
        places=np.asarray(places)[by_source],
        chance=np.asarray(chance)[by_source],
        first_edges=np.searchsorted(parents_of, np.arange(len(order) + 1)),
        levels=tuple(slice(start, end) for start, end in pairwise(bounds)),
    )
