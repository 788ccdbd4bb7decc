"""Opponents: the protocol that they follow, and their registry.

An opponent plays one seat. It is built once for a game and a seat, and restarted with a seed at the start
of every episode. Its moves follow from that seed and from what it is shown, so that an episode can be played
again. A new opponent is one file that ends in ``register_opponent``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from task_gym.errors import OpponentError, check_choice, nearest, quote

OPEN = "open"
"""The name that leaves every seat to the caller; no opponent has it."""

SELF = "self"
"""The name, in a trainer, of the policy itself; its environments have opponent "open"."""

ILLEGAL_RULES = ("raise", "forfeit")
"""The rules for an opponent's illegal action; see ``Entry``."""


class SeatView(Protocol):
    """The view that an opponent has when its seat is to move."""

    @property
    def seat(self) -> int:
        """The seat to move, from 0."""

    @property
    def state(self) -> Any:
        """The backend's own state. It can show what the seat may not see: reading it is cheating.

        Moves are made in a clone of it. One that changed is an ``OpponentActionError``.
        """

    def legal_actions(self) -> list[int]:
        """Returns the legal action ids, ascending; never empty."""

    def action_names(self) -> list[str]:
        """Returns the legal actions' names, in the same order."""

    def text(self) -> str:
        """Returns the observation that the environment would give this seat."""


class Opponent(Protocol):
    """A player of one seat."""

    def restart(self, seed: int) -> None:
        """Begins an episode; everything random in it follows from ``seed``."""

    def act(self, view: SeatView) -> int:
        """Returns a legal action for ``view.seat``: an ``int``, or another whole number such as NumPy's.

        For anything else, the rule decides that the opponent was registered with.
        """


@dataclass(frozen=True, slots=True)
class Seating:
    """The game and the seat that an opponent is built for.

    Attributes:
        game: The backend's game object (a ``pyspiel.Game`` for games).
        spec: The game's declaration (a ``game_gym.spec.GameSpec``).
        seat: The seat to play.
        argument: The text after the first ":" in the opponent's name, "" if there is none.
    """

    game: Any
    spec: Any
    seat: int
    argument: str


Factory = Callable[[Seating], Opponent]


class KnownPolicy(Protocol):
    """The policy of an opponent whose probabilities can be asked for."""

    @property
    def form(self) -> Mapping[str, Any]:
        """The form of its prompts: keywords of ``game_gym.exact.information_states``."""

    def list_probabilities(
        self, texts: Sequence[str], legal: Sequence[Sequence[int]]
    ) -> Sequence[Sequence[float]]:
        """Returns the probabilities of the legal actions of each prompt."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One registered opponent.

    Attributes:
        name: The word before the first ":".
        factory: Builds it for a seat; raises ``OpponentError`` for a game or argument it cannot take.
        usage: Its name in error messages, as "mcts[:SIMS[xROLLOUTS]]".
        takes_argument: Whether something may follow a ":".
        why_not_replayable: "" if restarting with the same seed plays the same moves again; otherwise the
            reason, with which pickling in mid-game fails.
        stand_in: (game, argument) to the name of the opponent that plays in this one's place in that game, ""
            if it plays itself; raises ``OpponentError`` for an argument it cannot read. None if it plays
            itself in every game.
        illegal: The rule for an illegal action, and for an answer that is not a whole number. "raise":
            an ``OpponentActionError`` ends the episode. "forfeit": the opponent's seat gives the game
            up, and ``info["opponent_illegal"]`` counts that.
        waits: Whether it waits for a server, so that threads can overlap the moves of several episodes.
        searches: Whether it computes its moves for long, outside this process's Python lock, so that as many
            threads as there are cores can search at once, and a trainer's model can decide meanwhile.
        find_policy: The argument to its policy; raises ``OpponentError`` if there is none. None if its
            probabilities are not known.
    """

    name: str
    factory: Factory
    usage: str
    takes_argument: bool
    why_not_replayable: str
    stand_in: Callable[[Any, str], str] | None
    illegal: str
    waits: bool = False
    searches: bool = False
    find_policy: Callable[[str], KnownPolicy] | None = None


REGISTRY: dict[str, Entry] = {}
"""The opponents by name."""


def register_opponent(
    name: str,
    factory: Factory,
    *,
    usage: str | None = None,
    takes_argument: bool = False,
    why_not_replayable: str = "",
    stand_in: Callable[[Any, str], str] | None = None,
    illegal: str = "raise",
    waits: bool = False,
    searches: bool = False,
    find_policy: Callable[[str], KnownPolicy] | None = None,
) -> None:
    """Adds an opponent. The same factory may be registered again, with other settings.

    Every action of an opponent is checked. With the default ``illegal="raise"``, an illegal action raises an
    ``OpponentActionError`` out of ``reset`` or ``step``. The episode is then over; the next ``reset``
    starts a clean one. An opponent that can be wrong, such as a language model, needs the other rule::

        register_opponent("chat", Chat, usage="chat:MODEL", takes_argument=True, illegal="forfeit")

    or draws among ``view.legal_actions()`` itself.

    The arguments are the attributes of ``Entry``; without ``usage`` it is the name.

    Raises:
        OpponentError: the name is taken or not a word, the factory is no function or a class without the
            methods of an opponent, or there is no such rule.
    """
    check_choice("illegal", illegal, ILLEGAL_RULES, OpponentError)
    # Blanks would part the names of a list, and ":" begins an argument.
    word = isinstance(name, str) and name.split() == [name] and ":" not in name
    known = REGISTRY.get(name) if word else None
    if not word or name == OPEN or (known is not None and known.factory is not factory):
        raise OpponentError(
            f"opponent name {quote(name)} is taken or not a word; taken: {', '.join(opponent_names())}"
        )
    if not callable(factory):
        raise OpponentError(
            f"opponent {name!r}: the factory {quote(factory)} was given, allowed: a class or function of a "
            "Seating"
        )
    if isinstance(factory, type):
        _check_methods(name, factory)
    REGISTRY[name] = Entry(
        name, factory, usage or name, takes_argument, why_not_replayable, stand_in, illegal, waits, searches,
        find_policy,
    )  # fmt: skip


METHODS = {"restart": "restart(self, seed)", "act": "act(self, view)"}
"""The methods of an opponent, as they are written."""


def _check_methods(name: str, opponent: Any) -> None:
    """Raises ``OpponentError`` unless a class, or an opponent that a function made, has all methods."""
    missing = [
        written for method, written in METHODS.items() if not callable(getattr(opponent, method, None))
    ]
    if missing:
        raise OpponentError(
            f"opponent {name!r}: {quote(opponent)} was given, which lacks {' and '.join(missing)}; needed: "
            f"{' and '.join(METHODS.values())}"
        )


def opponent_names() -> tuple[str, ...]:
    """Returns every name that may be asked for, in alphabetical order, "open" included."""
    return tuple(sorted([*REGISTRY, OPEN]))


REGISTERED_BY = {"policy": "gamespiel.policy_opponent", "openai": "gamespiel.endpoints.opponent"}
"""Modules of other packages that register an opponent when they are imported, by its name."""


def find_opponent(text: str) -> Entry:
    """Returns the entry of an opponent, as "random" or "mcts:100x10"; "open" has none.

    Raises:
        OpponentError: there is no opponent of that name, or it takes no argument.
    """
    name, colon, argument = text.partition(":") if isinstance(text, str) else (text, "", "")
    entry = REGISTRY.get(name) if isinstance(name, str) else None
    if entry is None:
        usages = sorted([*(known.usage for known in REGISTRY.values()), OPEN])
        module = REGISTERED_BY.get(name) if isinstance(name, str) else None
        raise OpponentError(
            f"opponent: {quote(text)} was given, allowed: {', '.join(usages)}"
            + (f"; import {module} registers {name!r}" if module else nearest(name, opponent_names()))
        )
    if colon and not argument:
        raise OpponentError(
            f"opponent: {text!r} was given, with nothing after the colon; write {entry.usage!r}"
        )
    if colon and not entry.takes_argument:
        raise OpponentError(
            f"opponent: {text!r} was given, but {name!r} takes no argument; write {entry.usage!r}"
        )
    return entry


def playing_name(text: str, game: Any) -> str:
    """Returns the opponent that plays a game of several seats: ``text`` itself, or its stand-in.

    Raises:
        OpponentError: there is no opponent of that name, or it cannot take the argument.
    """
    if text == OPEN:
        return OPEN
    stand_in = find_opponent(text).stand_in
    return (stand_in is not None and stand_in(game, text.partition(":")[2])) or text


def opponent_waits(text: str) -> bool:
    """Returns whether an opponent waits for a server; "open" does not.

    Raises:
        OpponentError: as ``find_opponent``.
    """
    return text != OPEN and find_opponent(text).waits


def opponent_searches(text: str) -> bool:
    """Returns whether an opponent searches outside this process's Python lock; "open" does not.

    Raises:
        OpponentError: as ``find_opponent``.
    """
    return text != OPEN and find_opponent(text).searches


def explain_no_replay(text: Any) -> str:
    """Returns why an opponent would not play the same moves again; "" if it would, or is none."""
    entry = REGISTRY.get(text.partition(":")[0]) if isinstance(text, str) else None
    why = "" if entry is None else entry.why_not_replayable
    return why and f"opponent {text!r}: {why}"


def make_opponent(text: str, game: Any, spec: Any, seat: int) -> Opponent:
    """Builds the opponent that ``text`` names, for one seat of one game.

    Raises:
        OpponentError: as ``find_opponent``, the opponent cannot play, or it lacks a method.
    """
    entry = find_opponent(text)
    opponent = entry.factory(Seating(game, spec, seat, text.partition(":")[2]))
    _check_methods(entry.name, opponent)
    return opponent


COUNT_DIGITS = 9


def parse_counts(text: str, separator: str, usage: str, least: Sequence[int]) -> list[int]:
    """Reads "100x10" into [100, 10]: one or more whole numbers, the i-th at least ``least[i]``.

    Raises:
        OpponentError: the text is anything else. The message says how the opponent is written.
    """
    parts = text.split(separator)
    good = len(parts) <= len(least) and all(
        part.isascii() and part.isdigit() and len(part) <= COUNT_DIGITS and int(part) >= low
        for part, low in zip(parts, least, strict=False)
    )
    if not good:
        raise OpponentError(
            f"opponent argument: {quote(text)} was given, allowed: {usage} with whole numbers of at least "
            f"{', '.join(str(low) for low in least)} and of at most {COUNT_DIGITS} digits"
        )
    return [int(part) for part in parts]
