"""The declaration of a game, and a game loaded from it."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pyspiel

from task_gym.errors import GameError, explain_unknown, quote

# pyspiel has no type stubs: its games and states are Any to the type checker.
Game = Any
State = Any
Params = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Budget:
    """A search budget: simulations per move, random rollouts per simulation."""

    simulations: int
    rollouts: int


# Compared by identity: there is one declaration per game, and caches are keyed by it.
@dataclass(frozen=True, slots=True, eq=False)
class GameSpec:
    """One game's declaration: all that GameSpiel adds to OpenSpiel's game.

    Attributes:
        name: OpenSpiel's short name.
        rules: Parameters to the text of the rules.
        describe: (state, seat) to the state block of the prompt. It depends only on the seat's
            information state and shows all of it.
        params: Task config id to OpenSpiel parameters; only games of the task-id table need it.
        variants: ``params`` repeats with this period.
        allowed: Parameters that the rules and the description know, each with its allowed values; others are
            refused.
        budget: The budget of the opponent "mcts"; None if the game cannot be searched.
        fixed_names: Whether an action's name depends only on seat and id, so that names can be kept.
        typed: Parameters of which only the type is checked: that of the one value in ``allowed``.
        numbered_names: Whether every action's name begins with its id and " - ", as "12 - 24/22 13/11".
        agent: A ``game_gym.upstream_texts.Words``, if the texts are upstream's.
        name_chance: (state, outcome) to the name of a chance outcome in transcripts and replays; None for
            OpenSpiel's.
        show: A state to the text of all of it, every seat's cards included, as replays have it; None for
            OpenSpiel's. No player reads it.
        may_strand: Parameters to whether OpenSpiel may leave a player without a legal action before the end.
            Its C++ search does not survive that, so there it runs in a process of its own.
        state_key: A state to what tells it from others: where keys are equal, the same actions, texts and
            ends follow, whatever was played before. So the game's tree has each key once. None where only
            the sequence of actions decides.
        slow_deal: Whether OpenSpiel takes long to deal, and all chance comes before the first turn: deals are
            then kept, for the next time that their seed is played.
        notation: How an action is written, as "Pass or Bet.": prompts without the list of legal actions say
            it. "" if it is not known.

    Raises:
        GameError: a field has another type than is declared here.
    """

    name: str
    rules: Callable[[Params], str]
    describe: Callable[[State, int], str]
    params: Callable[[int], dict[str, Any]] = lambda config: {}
    variants: int = 1
    allowed: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    budget: Budget | None = None
    fixed_names: bool = False
    typed: frozenset[str] = frozenset()
    numbered_names: bool = False
    agent: Any = None
    name_chance: Callable[[State, int], str] | None = None
    show: Callable[[State], str] | None = None
    may_strand: Callable[[Params], bool] = lambda params: False
    state_key: Callable[[State], Hashable] | None = None
    slow_deal: bool = False
    notation: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise GameError(f"GameSpec: name: {quote(self.name)} was given, needed: a text")
        for field_name, (needed, fits) in _FIELDS.items():
            value = getattr(self, field_name)
            if not fits(value):
                raise GameError(
                    f"GameSpec {self.name!r}: {field_name}: {quote(value)} was given, needed: {needed}"
                )


def _is_optional(value: object) -> bool:
    return value is None or callable(value)


_FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "slow_deal": ("True or False", lambda value: isinstance(value, bool)),
    "notation": ("a text, as 'Pass or Bet.'", lambda value: isinstance(value, str)),
    "rules": (
        "a function of the parameters that returns the rules, as lambda params: 'Take a stick.'",
        callable,
    ),
    "describe": ("a function of a state and a seat that returns the state as that seat sees it", callable),
    "params": ("a function of a task's config id that returns OpenSpiel's parameters", callable),
    "name_chance": (
        "a function of a state and an outcome that returns the outcome's name, or None",
        _is_optional,
    ),
    "show": ("a function of a state that returns a text, or None", _is_optional),
    "may_strand": ("a function of the parameters that returns whether a player may have no move", callable),
    "state_key": ("a function of a state that returns what tells it from the others, or None", _is_optional),
    "allowed": (
        'parameters with a tuple of values each, as {"players": (2, 3)}',
        lambda value: isinstance(value, Mapping) and all(isinstance(v, tuple) for v in value.values()),
    ),
    "budget": (
        "Budget(simulations=..., rollouts=...), or None",
        lambda value: value is None or isinstance(value, Budget),
    ),
}
"""The fields of a declaration that are checked: what is needed, and whether a value is that."""


class Variant:
    """A game loaded from its declaration, with parameters.

    Attributes:
        spec: The declaration.
        game: The ``pyspiel.Game``.
        players: Number of seats.
        actions: Number of distinct actions; ids are below it.
        zero_sum: Whether the returns always sum to zero.
        low: The least possible return.
        high: The greatest possible return.
        pays_moves: Whether the game pays move by move and not at the end only.
        params: The full parameter set, defaults included.
        rules: The text of the rules.

    Raises:
        GameError: OpenSpiel refuses the parameters, or the game is of a kind that cannot be played here.
    """

    def __init__(self, spec: GameSpec, params: Params) -> None:
        self.spec = spec
        self.game: Game = load_quietly(spec.name, params)
        kind = self.game.get_type()
        _check_kind(spec.name, kind)
        _check_plays(spec.name, self.game)
        self.players: int = self.game.num_players()
        self.actions: int = self.game.num_distinct_actions()
        if self.actions < 1:
            raise GameError(f"{spec.name} parameters: {dict(params)!r} was given, which leave no actions")
        self.zero_sum: bool = kind.utility == pyspiel.GameType.Utility.ZERO_SUM
        self.low: float = self.game.min_utility()
        self.high: float = self.game.max_utility()
        self.pays_moves: bool = kind.reward_model == pyspiel.GameType.RewardModel.REWARDS
        self.params: dict[str, Any] = self.game.get_parameters()
        if not spec.typed:  # some games report only what was given; else a default may be a placeholder
            self.params = {**kind.parameter_specification, **self.params}
        self.rules: str = spec.rules(self.params)
        if not isinstance(self.rules, str):
            raise GameError(f"game: {spec.name!r}: its rules returned {self.rules!r}, allowed: a text")
        # For fixed names: each seat's names and lines by action id, as far as they were asked for.
        self._names: list[dict[int, str]] = [{} for _ in range(self.players)]
        self._lines: list[dict[int, str]] = [{} for _ in range(self.players)]

    def choices(self, state: State, seat: int, legal: Sequence[int]) -> tuple[list[str], str]:
        """Returns the legal actions' names (a new list) and lines, both in the order of ``legal``.

        The lines are those of ``choice_lines``.
        """
        if not self.spec.fixed_names:
            listed = [state.action_to_string(seat, action) for action in legal]
            return listed, choice_lines(legal, listed)
        names, lines = self._names[seat], self._lines[seat]
        try:
            return list(map(names.__getitem__, legal)), "\n".join(map(lines.__getitem__, legal))
        except KeyError:
            for action in legal:
                names[action] = name = state.action_to_string(seat, action)
                lines[action] = choice_lines([action], [name])
            return self.choices(state, seat, legal)


def strip_number(name: str) -> str:
    """Returns an action's name without the id that a game with ``numbered_names`` puts before it."""
    number, dash, rest = name.partition(" - ")
    return rest if dash and number.isdecimal() else name


def choice_lines(legal: Sequence[int], names: Sequence[str]) -> str:
    """Returns lines "  ID -> NAME" joined by newlines, in the order given."""
    return "\n".join([f"  {action} -> {name}" for action, name in zip(legal, names, strict=True)])


def load_variant(spec: GameSpec, params: Params, *, allow_files: bool = False) -> Variant:
    """Returns the loaded game for these parameters; the same object each time.

    Args:
        spec: The declaration.
        params: The parameters.
        allow_files: Whether a parameter may name a file, which OpenSpiel then opens.

    Raises:
        GameError: the declaration does not know a parameter, or does not allow its value.
    """
    for name, value in params.items():
        if name not in spec.allowed:
            raise GameError(explain_unknown(f"parameter of {spec.name}", name, spec.allowed))
        _check_value(spec, name, value)
    if not allow_files:
        _check_no_file(spec.name, params)
    # JSON keeps the types that OpenSpiel's parameters have, and can be hashed even if a game is a parameter.
    return _load(spec, json.dumps(dict(params), sort_keys=True))


def _check_value(spec: GameSpec, name: str, value: Any) -> None:
    choices = spec.allowed[name]
    if name in spec.typed:
        if type(value) is not type(choices[0]):
            raise GameError(
                f"{spec.name} parameter {name!r}: {value!r} was given, "
                f"allowed: a value of type {type(choices[0]).__name__}"
            )
    elif not any(type(value) is type(choice) and value == choice for choice in choices):
        raise GameError(explain_unknown(f"{spec.name} parameter {name!r}", value, choices))


_FILE_WORDS = frozenset(("file", "filename", "path", "root", "folder", "dir", "directory"))
_SETTING = re.compile(r"(\w+)\s*=\s*[^\s,)]")  # in a game that is written as text, with a value


def _check_no_file(game: str, value: Any, name: str = "") -> None:
    """Raises GameError if a parameter names a file, also one of a game that is a parameter."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _check_no_file(game, inner, str(key))
        return
    named = [name] if value not in ("", None) else []
    if isinstance(value, str):
        named += _SETTING.findall(value)
    for param in named:
        if _FILE_WORDS.intersection(param.lower().split("_")):
            raise GameError(
                f"{game} parameter {param!r}: {quote(value)} was given, a file that OpenSpiel would open and "
                "whose text errors and observations can show; allowed: with allow_files=True (in a "
                "configuration env.allow_files: true), which is for files that you chose"
            )


@lru_cache(maxsize=256)
def _load(spec: GameSpec, params: str) -> Variant:
    return Variant(spec, json.loads(params))


def load_quietly(name: str, params: Params) -> Game:
    """Returns OpenSpiel's game; its prints while loading (known issues, the text of errors) are dropped.

    Raises:
        GameError: OpenSpiel refuses the parameters.
    """
    try:
        with _no_stderr():
            game = pyspiel.load_game(name, dict(params))
            game.new_initial_state()  # some games do not look at their parameters before
            return game
    except (RuntimeError, LookupError, TypeError, ValueError, MemoryError) as error:
        # SpielError is a RuntimeError. Its text has OpenSpiel's source file and line number first.
        reason = " ".join(re.sub(r"^/\S+:\d+ ", "", str(error)).split())
        raise GameError(
            f"{name} parameters: {dict(params)!r} was given, which OpenSpiel refuses: {reason}"
        ) from error


# One thread at a time: a second one would keep the null device as the process's standard error, and put it
# back last. A process is forked at no such time either.
_stderr_lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_stderr_lock.acquire,
        after_in_parent=_stderr_lock.release,
        after_in_child=_stderr_lock.release,
    )


@contextmanager
def _no_stderr() -> Iterator[None]:
    """Drops what C++ writes to file descriptor 2, if the process has one."""
    with _stderr_lock:
        if sys.stderr is not None:
            sys.stderr.flush()
        try:
            stderr = os.dup(2)
        except OSError:
            yield
            return
        try:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), 2)
            yield
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)


def _check_kind(name: str, kind: Any) -> None:
    if kind.dynamics == pyspiel.GameType.Dynamics.MEAN_FIELD:
        raise GameError(
            f"game: {name!r} was given, a mean-field game, where a player faces a distribution; "
            "allowed: games with alternating or simultaneous moves"
        )
    if kind.chance_mode == pyspiel.GameType.ChanceMode.SAMPLED_STOCHASTIC:
        raise GameError(
            f"game: {name!r} was given, which draws its own chance, so that it cannot be played again from "
            "its address; allowed: games whose chance is drawn from outside"
        )


def _check_plays(name: str, game: Game) -> None:
    state = game.new_initial_state()
    try:
        with _no_stderr():
            state.legal_actions()
    except RuntimeError as error:
        raise GameError(
            f"game: {name!r} was given, which does not number its actions; allowed: games that do"
        ) from error
