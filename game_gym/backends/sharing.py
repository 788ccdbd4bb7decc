"""The backend of games that are played side by side: what they all pass is computed once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from math import log
from typing import Any, cast

import pyspiel

from game_gym.backends.base import GameTurn
from game_gym.backends.local import CHANCE, TERMINAL, LocalBackend, Match
from game_gym.spec import State, Variant
from game_gym.task import Task
from task_gym.opponents import sees_only_actions

MOST_HISTORIES = 10**7
"""The most histories, by OpenSpiel's own bounds, of a game whose positions are shared.

Leduc and Kuhn poker for two are below it (Leduc's bound is 1.4 million, and it has 9,457). Games far above it
are seldom twice at the same position, so that what is kept would not be found again. Games with a
``state_key`` are shared whatever their bound is.
"""

ROOM = 1 << 24
"""The most bytes, roughly, that the positions of a batch take."""

POSITION_SIZE, TURN_SIZE = 500, 300
"""Bytes of a position and of its turn, without the turn's text."""


def is_small(variant: Variant) -> bool:
    """Returns whether a game has few positions, and its players move one at a time."""
    game, kind = variant.game, variant.game.get_type()
    if kind.dynamics != pyspiel.GameType.Dynamics.SEQUENTIAL:
        return False
    if variant.spec.state_key is not None:
        return True
    bound = game.max_game_length() * log(variant.actions)
    if kind.chance_mode != pyspiel.GameType.ChanceMode.DETERMINISTIC:
        bound += game.max_chance_nodes_in_history() * log(max(1, game.max_chance_outcomes()))
    return bool(bound <= log(MOST_HISTORIES))


class Position:
    """A point of a game, and what is the same whenever a game is there.

    One sequence of actions leads there, or any to a state with the key that the game's declaration gives it.

    Attributes:
        player: Who is to move, as ``pyspiel.State.current_player`` says.
        legal: The legal actions, if a player is to move.
        outcomes: The chance outcomes and their probabilities, if chance is.
        returns: One per seat, at the end.
        turn: The turn of the seat to move; None until a caller has been there.
        children: The positions after each action, as far as games have been there.
    """

    __slots__ = ("children", "legal", "outcomes", "player", "returns", "turn")

    def __init__(self, state: State) -> None:
        self.player: int = state.current_player()
        self.legal: list[int] = []
        self.outcomes: tuple[tuple[int, ...], tuple[float, ...]] = (), ()
        self.returns: tuple[float, ...] = ()
        self.turn: GameTurn | None = None
        self.children: dict[int, Position] = {}
        if self.player == CHANCE:
            actions, probabilities = zip(*state.chance_outcomes(), strict=True)
            self.outcomes = actions, probabilities
        elif self.player == TERMINAL:
            self.returns = tuple(state.returns())
        else:
            self.legal = state.legal_actions()

    def legal_actions(self) -> list[int]:
        """Returns the legal actions: for an opponent that asks for nothing else, this is its view."""
        return self.legal


class Positions:
    """The positions that the games of a batch share, up to ``ROOM``.

    Threads may share them: at worst, two of them compute the same position.
    """

    def __init__(self, room: int = ROOM) -> None:
        self._roots: dict[Variant, Position] = {}
        self._keyed: dict[tuple[Variant, Hashable], Position] = {}  # by ``GameSpec.state_key``
        self._room = room

    def find_root(self, variant: Variant) -> Position:
        """Returns the first position of a game."""
        root = self._roots.get(variant)
        if root is None:
            root = self._roots[variant] = Position(variant.game.new_initial_state())
        return root

    @property
    def is_full(self) -> bool:
        """Whether no more positions are kept."""
        return self._room <= 0

    def add_child(self, variant: Variant, parent: Position, action: int, state: State) -> Position | None:
        """Adds and returns the position after an action at ``state``, which is changed.

        The result is None if OpenSpiel refuses the action, or leaves the game there without a legal one.
        """
        try:
            state.apply_action(action)
        except pyspiel.SpielError:
            return None
        name = variant.spec.state_key
        key = None if name is None else (variant, name(state))
        child = None if key is None else self._keyed.get(key)
        if child is None:
            child = Position(state)
            if not child.legal and child.player not in (CHANCE, TERMINAL):
                return None
            self._room -= POSITION_SIZE
            if key is not None:
                self._keyed[key] = child
        parent.children[action] = child
        return child

    def keep_turn(self, position: Position, turn: GameTurn) -> None:
        """Keeps the turn of the seat to move."""
        self._room -= TURN_SIZE + len(turn.text)
        position.turn = turn


class SharingBackend(LocalBackend):
    """Plays as ``LocalBackend``, and walks along shared positions as far as they go.

    Until then there is no ``pyspiel.State``: ``state`` makes it when it is asked for. Turns, random streams
    and ends are the same. Large games, and opponents that look at the state, play as in ``LocalBackend``.

    Args:
        seeding: As in ``LocalBackend``.
        rules: As in ``LocalBackend``.
        positions: What the games of the batch share; all have the same ``rules``.
    """

    def __init__(self, seeding: str, rules: bool, positions: Positions) -> None:
        super().__init__(seeding, rules)
        self._positions = positions
        self._position: Position | None = None  # None when the state is live
        self._path: list[int] = []  # the actions up to the position
        self._fresh_state: State = None  # the state of the position, if the last action there was new

    def __getattr__(self, name: str) -> Any:
        """Returns the state of a game that has none so far; it is live from then on."""
        if name == "state":
            return self._make_state()
        raise AttributeError(name)

    def history(self) -> list[int]:
        """Returns every action so far, by chance and opponents too."""
        return super().history() if self._position is None else self._path.copy()

    def _begin(self, task: Task, seed: int, opponent: str, seat: int | None) -> None:
        match = self._prepare(task.variant, seed, opponent, seat)
        if match.root is None:
            self._position = None
            self._enter(task.variant.game.new_initial_state())
            return
        if self._position is None:
            del self.state
        self._position, self._fresh_state = match.root, None
        self._path.clear()

    def _new_match(self, variant: Variant, opponent: str) -> Match:
        match = super()._new_match(variant, opponent)
        if is_small(variant) and match.rule == "raise" and all(map(sees_only_actions, match.bots)):
            match = replace(match, root=self._positions.find_root(variant))
            self._matches[variant, opponent] = match
        return match

    def _make_state(self) -> State:
        """Makes the state of this position, and goes on from there as ``LocalBackend`` does."""
        state = self._replay()
        self._position = self._fresh_state = None
        self._enter(state)
        return state

    def _replay(self) -> State:
        """Returns a new state of this position."""
        state = self._match.variant.game.new_initial_state()
        for action in self._path:
            state.apply_action(action)
        return state

    def _follow(self, position: Position, action: int) -> Position | None:
        """Returns the position after an action; None if it is not shared. The state is live from then on."""
        child, state = position.children.get(action), None
        if child is None and not self._positions.is_full:
            state = self._replay() if self._fresh_state is None else self._fresh_state
            child = self._positions.add_child(self._match.variant, position, action, state)
        self._fresh_state = state
        if child is None:
            self._make_state()
        else:
            self._path.append(action)
            self._position = child
        return child

    def _play(self, action: int) -> GameTurn:
        position = self._position
        if position is None or self._follow(position, action) is None:
            return super()._play(action)
        return self._next_turn()

    def _next_turn(self) -> GameTurn:
        position, bots = self._position, self._match.bots
        if position is None:
            return super()._next_turn()
        while (player := position.player) != TERMINAL:
            if player == CHANCE:
                actions, probabilities = position.outcomes
                action = actions[self._require_chance().weighted(probabilities)]
            elif bots and player != self._seat:
                action = bots[player].act(position)  # type: ignore[arg-type]
                if type(action) is not int or action not in position.legal:
                    action = cast(int, self._checked(player, action, position.legal))
            else:
                self._seat, self._simultaneous = player, False
                return position.turn or self._show(position)
            child = self._follow(position, action)
            if child is None:
                try:
                    self.state.apply_action(action)
                except pyspiel.SpielError:
                    return self._stuck()
                return super()._next_turn()
            position = child
        return self._over(position.returns)

    def _show(self, position: Position) -> GameTurn:
        """Returns the turn of the seat to move, which no game has shown before."""
        self._enter(self._replay() if self._fresh_state is None else self._fresh_state)
        try:
            turn = self._turn(position.legal)
        finally:
            del self.state
        self._positions.keep_turn(position, turn)
        return turn
