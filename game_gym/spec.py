"""What a game declares, and a game loaded from its declaration."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyspiel

from task_gym.errors import GameError, unknown

#: pyspiel has no type stubs: its games and states are Any to the type checker.
Game = Any
State = Any
Params = Mapping[str, Any]

#: Legal-action blocks kept per variant and seat; above this the cache starts over.
_CACHED_CHOICES = 4096


@dataclass(frozen=True, slots=True)
class Budget:
    """A search budget: simulations a move, random rollouts a simulation."""

    simulations: int
    rollouts: int


# Compared by identity: there is one declaration a game, and caches are keyed by it.
@dataclass(frozen=True, slots=True, eq=False)
class GameSpec:
    """One game's declaration: everything about it that is not OpenSpiel's.

    Attributes:
        name: OpenSpiel's short name.
        rules: Parameters to the rules text, in the words a player is told.
        describe: (state, seat) to the state block of the prompt. It depends on the seat's information state
            alone and carries all of it.
        params: Task config id to OpenSpiel parameters.
        variants: ``params`` repeats with this period.
        allowed: Parameters that the rules and the description know, each with its allowed values.
        budget: What the opponent "mcts" spends; None where the game cannot be searched.
        fixed_names: Whether an action's name depends on seat and id alone, so that names can be kept.
    """

    name: str
    rules: Callable[[Params], str]
    describe: Callable[[State, int], str]
    params: Callable[[int], dict[str, Any]]
    variants: int
    allowed: Mapping[str, tuple[Any, ...]]
    budget: Budget | None
    fixed_names: bool = False


class Variant:
    """A declaration with parameters, loaded.

    Attributes:
        spec: The declaration.
        game: The ``pyspiel.Game``.
        players: Number of seats.
        actions: Number of distinct actions; ids are below it.
        zero_sum: Whether the returns always sum to zero.
        low, high: The least and the greatest possible return.
        pays_moves: Whether the game pays move by move and not at the end only.
    """

    def __init__(self, spec: GameSpec, params: Params) -> None:
        self.spec = spec
        self.game: Game = pyspiel.load_game(spec.name, dict(params))
        kind = self.game.get_type()
        self.players: int = self.game.num_players()
        self.actions: int = self.game.num_distinct_actions()
        self.zero_sum: bool = kind.utility == pyspiel.GameType.Utility.ZERO_SUM
        self.low: float = self.game.min_utility()
        self.high: float = self.game.max_utility()
        self.pays_moves: bool = kind.reward_model == pyspiel.GameType.RewardModel.REWARDS
        #: The full parameter set, defaults included.
        self.params: dict[str, Any] = self.game.get_parameters()
        #: The rules in words.
        self.rules: str = spec.rules(self.params)
        self._choices: dict[tuple[int, ...], tuple[list[str], str]] = {}

    def choices(self, state: State, seat: int, legal: Sequence[int]) -> tuple[list[str], str]:
        """Names of the legal actions and the prompt's block of them.

        Returns:
            names (a new list, in the order of ``legal``) and lines "  ID -> NAME" joined by newlines.
        """
        if not self.spec.fixed_names:
            return _choices(state, seat, legal)
        key = (seat, *legal)
        known = self._choices.get(key)
        if known is None:
            if len(self._choices) >= _CACHED_CHOICES:
                self._choices.clear()
            known = self._choices[key] = _choices(state, seat, legal)
        return known[0].copy(), known[1]


def _choices(state: State, seat: int, legal: Sequence[int]) -> tuple[list[str], str]:
    names = [state.action_to_string(seat, action) for action in legal]
    return names, "\n".join(f"  {action} -> {name}" for action, name in zip(legal, names, strict=True))


def load_variant(spec: GameSpec, params: Params) -> Variant:
    """The loaded game for these parameters; the same object each time.

    Raises:
        GameError: a parameter the declaration does not know, or a value it does not allow.
    """
    for name, value in params.items():
        if name not in spec.allowed:
            raise GameError(unknown(f"parameter of {spec.name}", name, spec.allowed))
        if not any(type(value) is type(choice) and value == choice for choice in spec.allowed[name]):
            raise GameError(unknown(f"{spec.name} parameter {name!r}", value, spec.allowed[name]))
    return _load(spec, tuple(sorted(params.items())))


@lru_cache(maxsize=256)
def _load(spec: GameSpec, params: tuple[tuple[str, Any], ...]) -> Variant:
    return Variant(spec, dict(params))
