"""Exact evaluation of a policy, without sampling, in games that are small enough to enumerate.

The policy is asked once, for every information state of both seats; the rest are operations on the game's
tree. The games have two seats, alternating moves and at most ``game_gym.walk.MAX_STATES`` histories
(kuhn_poker has 58, leduc_poker 9,457, liars_dice with a die each 294,883, tic_tac_toe 549,946).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyspiel
from numpy.typing import NDArray

from game_gym.spec import Variant
from game_gym.task import TaskSet
from game_gym.tree import GameTree, Table, build_tree
from game_gym.tree import InformationState as InformationState
from game_gym.tree import Policy as Policy
from game_gym.walk import check_size as check_size
from task_gym.errors import ArgumentError, check_choice

_Tabular = dict[str, list[tuple[int, float]]]
"""A policy for OpenSpiel's algorithms: information state to (action, probability) pairs."""


@dataclass(frozen=True, slots=True)
class ExactResult:
    """Exact values, in returns; every pair is by seat (0, 1).

    Attributes:
        game: OpenSpiel name.
        opponent: The opponent on the other seat.
        values: Expected return of the policy from each seat.
        best: Expected return of a best response to the opponent from each seat.
        share: (values[0] + values[1]) / (best[0] + best[1]), the share of best response; NaN if the best
            response earns nothing.
        self_value: Expected return of seat 0 when the policy plays both seats.
        exploitability: Half of what best responses to it gain, both seats together (NashConv / 2).
        information_states: Number of information states that the policy was asked about.
    """

    game: str
    opponent: str
    values: tuple[float, float]
    best: tuple[float, float]
    share: float
    self_value: float
    exploitability: float
    information_states: int


def find_variant(
    task_id: int | None = None,
    game: str | None = None,
    params: dict[str, Any] | None = None,
    allow_files: bool = False,
) -> Variant:
    """Returns the game of a task id or of a name with parameters, as the environment's arguments have it."""
    return TaskSet(task_id=task_id, game=game, params=params, allow_files=allow_files).variants[0]


def evaluate(
    variant: Variant,
    policy: Policy,
    opponent: str = "random",
    rules: bool = True,
    conversation: str | None = None,
    *,
    list_actions: bool = True,
    named: bool = False,
) -> ExactResult:
    """Returns the policy's exact value against an opponent, the best response's, and its exploitability.

    Args:
        variant: The game; see ``find_variant``.
        policy: Called once, with each distinct observation and its legal actions.
        opponent: "random" (uniform over legal actions) or "first" (the lowest legal id).
        rules: Whether the observations begin with the rules.
        conversation: As in ``game_gym.tree.build_tree``.
        list_actions: As in ``game_gym.tree.build_tree``.
        named: As in ``game_gym.tree.build_tree``.

    Raises:
        ArgumentError: the opponent is no fixed policy, or the answers are no probabilities.
        SizeError: the game cannot be enumerated.
    """
    check_choice("opponent", opponent, tuple(OPPONENTS))
    tree = build_tree(
        variant, rules, conversation=conversation, list_actions=list_actions, named=named, merge=True
    )
    return evaluate_table(tree, tree.tabulate(policy, conversation is not None), opponent)


def evaluate_table(tree: GameTree, table: Table, opponent: str) -> ExactResult:
    """Returns what ``evaluate`` does, of a policy that was asked before.

    Args:
        tree: The game.
        table: The policy's probabilities in each information state.
        opponent: One of ``OPPONENTS``.
    """
    fixed = tree.tabulate_fixed(OPPONENTS[opponent])

    def find_value(first: Table, second: Table, seat: int) -> float:
        return float(tree.back_up(tree.edge_probabilities([first, second]), seat, returns=True)[0])

    values = find_value(table, fixed, 0), find_value(fixed, table, 1)
    best = find_best_values(tree, fixed)
    total = best[0] + best[1]
    itself = find_value(table, table, 0), find_value(table, table, 1)
    return ExactResult(
        game=tree.variant.spec.name,
        opponent=opponent,
        values=values,
        best=best,
        share=(values[0] + values[1]) / total if total else float("nan"),
        self_value=itself[0],
        exploitability=(sum(find_best_values(tree, table)) - sum(itself)) / 2,
        information_states=len(tree.states),
    )


def split_by_seat(states: Iterable[InformationState], table: Sequence[Sequence[float]]) -> list[_Tabular]:
    """Returns a table of probabilities as one policy per seat for OpenSpiel's algorithms."""
    policies: list[_Tabular] = [{}, {}]
    for state, probabilities in zip(states, table, strict=True):
        policies[state.seat][state.key] = list(zip(state.legal, probabilities, strict=True))
    return policies


def find_best_values(tree: GameTree, table: Table) -> tuple[float, float]:
    """Returns the expected returns of best responses to a policy, from seat 0 and from seat 1.

    Args:
        tree: The game.
        table: The policy's probabilities in each information state.
    """
    if tree.has_one_level_per_state():
        edges = tree.edge_probabilities([table, table])
        values = [tree.back_up(tree.best_response(edges, seat), seat, returns=True)[0] for seat in (0, 1)]
        return float(values[0]), float(values[1])
    game, fixed = tree.variant.game, split_by_seat(tree.states, table)
    first, second = (
        pyspiel.TabularBestResponse(game, seat, fixed[1 - seat]).value_from_state(game.new_initial_state())
        for seat in (0, 1)
    )
    return float(first), float(second)


def list_regrets(
    variant: Variant, history: Sequence[int], seat: int, opponent: str = "random"
) -> list[float]:
    """Returns how much less each of a seat's moves in a game was worth than its best one there, in scores.

    A move is worth what the seat scores in the mean over all that it cannot see, if it goes on with its best
    response to the opponent. A game that ends where the seat is to move was given up there, for a score of 0.

    Args:
        variant: The game; all histories of each of its information states must have one length.
        history: Every action of the game, chance's too.
        seat: The seat.
        opponent: The opponent on the other seat, as in ``evaluate``.

    Raises:
        ArgumentError: the opponent is no fixed policy, the game has no such seat or history, or histories of
            one information state differ in length.
        SizeError: the game cannot be enumerated.
    """
    check_choice("opponent", opponent, tuple(OPPONENTS))
    check_choice("seat", seat, (0, 1))
    tree, worth = _find_best_actions(variant, seat, opponent)
    try:
        states, places, node = tree.find_turns(history, seat)
    except KeyError as error:
        raise ArgumentError(
            f"history: {list(history)!r:.200} was given, and the game has none like it"
        ) from error
    starts = tree.action_starts
    rows = [worth[starts[state] : starts[state + 1]] for state in states]
    scores = [row[place] for row, place in zip(rows, places, strict=True)]
    if tree.movers[node] == seat:  # it was given up
        state = tree.state_of[node]
        rows.append(worth[starts[state] : starts[state + 1]])
        scores.append(0.0)
    if any(np.isnan(row).any() for row in rows):
        raise ArgumentError(f"history: {list(history)!r:.200} was given, and {opponent!r} never plays so")
    return [float(row.max() - score) for row, score in zip(rows, scores, strict=True)]


@lru_cache(maxsize=4)
def _find_best_actions(variant: Variant, seat: int, opponent: str) -> tuple[GameTree, NDArray[np.float64]]:
    """Returns a game's tree, and what a seat's actions are worth before its best response, in scores."""
    tree = build_tree(variant, rules=False, merge=True)
    if not tree.has_one_level_per_state():
        raise ArgumentError(
            f"variant: {variant.spec.name} was given, allowed: games in which histories of one information "
            "state have the same length"
        )
    table = tree.tabulate_fixed(OPPONENTS[opponent])
    edges = tree.best_response(tree.edge_probabilities([table, table]), seat)
    # Moves that are not the best ones are reached too: the seat's own do not weigh what it cannot see.
    reach = tree.reach(np.where(tree.movers[tree.parents] == seat, 1.0, edges))
    return tree, tree.information_values(edges, seat, reach)[1]


def uniform(texts: Sequence[str], legal: Sequence[Sequence[int]]) -> list[NDArray[np.float64]]:
    """Returns the probabilities of the policy that plays every legal action equally often."""
    return [np.full(len(actions), 1 / len(actions)) for actions in legal]


def greedy(policy: Policy) -> Policy:
    """Returns the policy that always plays the likeliest action of ``policy``, the first of equals."""

    def likeliest(texts: Sequence[str], legal: Sequence[Sequence[int]]) -> list[NDArray[np.float64]]:
        return [np.eye(len(answer))[int(np.argmax(answer))] for answer in policy(texts, legal)]

    return likeliest


OPPONENTS: dict[str, Callable[[int], list[float]]] = {
    "random": lambda count: [1 / count] * count,
    "first": lambda count: [1.0] + [0.0] * (count - 1),
}
"""Opponents that are fixed policies: number of legal actions to probabilities."""
