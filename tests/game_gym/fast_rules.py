"""Compiled rules beside OpenSpiel's: the same games, move for move."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pyspiel

from game_gym.opponents.fast.rules import ENDED, make_noise

Choice = Callable[[Any, random.Random], int]
"""(state, generator) -> one of its legal actions"""


def choose_any(state: Any, generator: random.Random) -> int:
    return generator.choice(state.legal_actions())  # type: ignore[no-any-return]


def list_legal(rules: ModuleType, state: Any) -> list[int]:
    """Returns the legal actions of a compiled state."""
    actions = np.zeros(rules.ACTIONS, dtype=np.int32)
    count = rules.legal(state, actions)
    return [int(action) for action in actions[:count]]


def compare(rules: ModuleType, compiled: Any, state: Any) -> None:
    """Checks that both rules are at one position.

    A search may begin anywhere: a state that is read equals the one that was played.
    """
    assert np.array_equal(compiled, rules.read(state)), str(state)
    assert compiled[rules.PLAYER] == state.current_player(), str(state)
    if state.is_terminal():
        assert compiled[rules.PLAYER] == ENDED == int(pyspiel.PlayerId.TERMINAL)
        assert rules.result(compiled) == state.returns()[0] == -state.returns()[1]
    else:
        assert list_legal(rules, compiled) == state.legal_actions(), str(state)


def check_game(rules: ModuleType, game: Any, seed: int, choose: Choice = choose_any) -> int:
    """Plays a game by both rules; returns its number of moves."""
    generator, state, moves = random.Random(seed), game.new_initial_state(), 0
    compiled = rules.read(state)
    assert compiled.shape == (rules.STATE,) and compiled.dtype == np.int64
    compare(rules, compiled, state)
    while not state.is_terminal():
        assert len(state.legal_actions()) <= rules.ACTIONS
        action = choose(state, generator)
        state.apply_action(action)
        rules.apply(compiled, action)
        compare(rules, compiled, state)
        moves += 1
    return moves


def walk(game: Any, seed: int) -> Iterator[Any]:
    """Yields the states of the random game that ``check_game`` plays."""
    generator, state = random.Random(seed), game.new_initial_state()
    yield state
    while not state.is_terminal():
        state.apply_action(choose_any(state, generator))
        yield state


def follow(
    rules: ModuleType, state: Any, moves: str, find: Callable[[Any, str], int], returns: bool = True
) -> tuple[Any, Any]:
    """Makes moves by both rules, which ``find`` looks up; returns both states.

    With ``returns``, positions before the end have OpenSpiel's too.
    """
    compiled = rules.read(state)
    compare(rules, compiled, state)
    for move in moves.split():
        action = find(state, move)
        assert action in state.legal_actions(), move
        state.apply_action(action)
        rules.apply(compiled, action)
        compare(rules, compiled, state)
        assert not returns or rules.result(compiled) == state.returns()[0], str(state)
    assert list_legal(rules, compiled) == state.legal_actions()  # none at an end
    return state, compiled


def check_draws(rules: ModuleType, state: Any, draws: int = 4000) -> None:
    """Draws actions: each legal one comes as often as chance allows (five standard deviations), no other."""
    compiled, noise = rules.read(state), make_noise(1)
    actions = np.zeros(rules.ACTIONS, dtype=np.int32)
    drawn = [int(rules.draw(compiled, actions, noise)) for _ in range(draws)]
    legal = state.legal_actions()
    assert set(drawn) <= set(legal)
    share = 1 / len(legal)
    spread = (draws * share * (1 - share)) ** 0.5
    for action in legal:
        assert abs(drawn.count(action) - draws * share) <= 5 * spread + 1, action
    assert np.array_equal(compiled, rules.read(state))  # drawing changes nothing
