"""A walk through all histories of a small game, and whether it is small enough."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterator
from typing import NamedTuple

import pyspiel

from game_gym.spec import State, Variant
from task_gym.errors import SizeError

CHANCE = int(pyspiel.PlayerId.CHANCE)
TERMINAL = int(pyspiel.PlayerId.TERMINAL)

MAX_STATES = 5_000_000
"""The most histories (nodes of the game tree, chance and terminal ones included) that a game may have."""

PROBES = 15
"""Random games that estimate a game's size before its histories are counted; odd, for a majority."""

MARGIN = 20
"""A game is refused uncounted if most probes find it more than this many times too large.

A probe's estimate is right in the mean, so at most one of 20 probes is 20 times too high. The probability
that eight of 15 are is below 1e-6. Since the probes are the same everywhere, so is their answer.
"""

MOST_WAYS = 100
"""Histories that lead to one position, by which a game may be larger where positions merge."""


def check_size(
    variant: Variant, most: int | None = None, conversation: str | None = None, *, merge: bool = True
) -> None:
    """Raises SizeError if a game cannot be enumerated: within a second if it is far too large.

    Args:
        variant: The game.
        most: The most histories that it may have, None for ``MAX_STATES``.
        conversation: As in ``game_gym.tree.build_tree``; equal positions end different conversations.
        merge: Whether equal positions count once.

    Raises:
        SizeError: as ``game_gym.tree.build_tree`` does.
    """
    for _ in walk_histories(variant, most, find_position_key(variant, conversation) if merge else None):
        pass


def find_position_key(variant: Variant, conversation: str | None) -> Callable[[State], Hashable] | None:
    """Returns what tells positions apart; None where histories matter."""
    kind = variant.game.get_type()
    if conversation is None and kind.information == pyspiel.GameType.Information.PERFECT_INFORMATION:
        return variant.spec.state_key
    return None


class Visit(NamedTuple):
    """A step of the walk: a history, or a position that was there before, and the edge that led to it."""

    state: State
    node: int
    is_new: bool
    mover: int
    depth: int
    parent: int
    action: int
    place: int
    probability: float


def walk_histories(
    variant: Variant, most: int | None, position_of: Callable[[State], Hashable] | None
) -> Iterator[Visit]:
    """Yields every history of a game, depth first; with ``position_of``, goes on from each position once.

    Raises:
        SizeError: the game is of another kind, or has more than ``most`` histories.
    """
    _check_kind(variant)
    most = MAX_STATES if most is None else most
    too_large = SizeError(
        f"{variant.spec.name} was given, which has more than {most:,} histories (episodes of "
        f"up to {variant.game.max_game_length()} moves among "
        f"{variant.game.num_distinct_actions()} actions); "
        "allowed: games of at most so many, as leduc_poker with 9,457 and kuhn_poker with 58"
    )
    if _is_far_larger(variant, most):
        raise too_large
    count, positions = 0, dict[Hashable, int]()
    waiting: list[tuple[State, int, int, int, int, float]] = [
        (variant.game.new_initial_state(), 0, -1, -1, 0, 1.0)
    ]
    while waiting:
        state, depth, parent, action, place, probability = waiting.pop()
        node, mover = count, state.current_player()
        if position_of is not None:
            node = positions.setdefault((depth, position_of(state)), count)
        is_new = node == count
        if is_new:
            count += 1
            if count > most:
                raise too_large
        yield Visit(state, node, is_new, mover, depth, parent, action, place, probability)
        if not is_new or mover == TERMINAL:
            continue
        moves = state.chance_outcomes() if mover == CHANCE else [(a, 1.0) for a in state.legal_actions()]
        for i in range(len(moves) - 1, -1, -1):
            action, probability = moves[i]
            waiting.append((state.child(action), depth + 1, node, action, i, probability))


def _is_far_larger(variant: Variant, most: int) -> bool:
    """Returns whether a game has many times more histories than ``most``, judged by a few random games.

    A random game's estimate of their number is 1 + b₁ + b₁b₂ + …, where bᵢ is the number of its i-th move's
    alternatives (Knuth 1975, "Estimating the efficiency of backtrack programs"). It only grows along the
    game, so in a large game a few moves are enough. Where positions merge, it is an upper bound.
    """
    generator, too_large = random.Random(0), 0
    margin = MARGIN if find_position_key(variant, None) is None else MARGIN * MOST_WAYS
    for _ in range(PROBES):
        state: State = variant.game.new_initial_state()
        width = estimate = 1
        while estimate <= margin * most and not state.is_terminal():
            legal = state.legal_actions()
            width *= len(legal)
            estimate += width
            state.apply_action(generator.choice(legal))
        too_large += estimate > margin * most
    return too_large > PROBES // 2


def _check_kind(variant: Variant) -> None:
    kind = variant.game.get_type()
    sequential = kind.dynamics == pyspiel.GameType.Dynamics.SEQUENTIAL
    if variant.players != 2 or not sequential:
        raise SizeError(
            f"{variant.spec.name} was given, with {variant.players} seats and "
            f"{'alternating' if sequential else 'simultaneous'} moves; allowed: two seats, alternating moves"
        )
    if not kind.provides_information_state_string:
        raise SizeError(
            f"{variant.spec.name} was given, whose information states OpenSpiel does not name; allowed: "
            "games of which it does, as kuhn_poker and leduc_poker"
        )
