"""What a player reads. Pure functions of a state, a seat and whether the rules are told.

The layout keeps what affinetes' replies and parsers rest on: a line "Game: NAME", a line "You are Player N.",
the state headed "Current State:", and a block headed "Legal Actions:" with lines "  ID -> NAME", closed by a
line that begins "Your choice".
"""

from __future__ import annotations

from collections.abc import Sequence

from game_gym.spec import State, Variant, choice_lines
from task_gym.contract import CLOSING
from task_gym.errors import EpisodeError, LayoutError


def render(variant: Variant, state: State, seat: int, rules: bool = True) -> str:
    """The observation of ``seat`` at ``state``, which it is the seat's turn in.

    On equal information states of the seat it is equal, whatever else differs between the states.
    """
    return render_turn(variant, state, seat, rules, state.legal_actions(seat))[0]


def render_turn(
    variant: Variant, state: State, seat: int, rules: bool, legal: Sequence[int]
) -> tuple[str, list[str]]:
    """The observation and the names of the legal actions, which the caller has at hand."""
    names, block = variant.choices(state, seat, legal)
    told = _told(variant) if rules else ""
    text = (
        f"{told}Game: {variant.spec.name}\nYou are Player {seat}.\n\nCurrent State:\n"
        f"{variant.spec.describe(state, seat)}{_asked(block)}"
    )
    return text, names


def _told(variant: Variant) -> str:
    """What stands before the line "Game: NAME" where the rules are told."""
    return f"# Game Rules\n{variant.rules}\n\n# Current Game State\n"


def _asked(block: str) -> str:
    """What stands after the state: the legal actions' lines, and what to answer."""
    return f"\n\nLegal Actions:\n{block}\n\n{CLOSING}"


def without_rules(text: str, variant: Variant) -> str:
    """The observation of a turn that was told with the rules, without them.

    Raises:
        LayoutError: the text does not begin with the rules of this variant.
    """
    told = _told(variant)
    if not text.startswith(told):
        raise LayoutError(
            f"observation: a text that begins {text[:60]!r} was given, allowed: one that begins with the "
            f"rules of {variant.spec.name}"
        )
    return text[len(told) :]


def without_choices(text: str, legal: Sequence[int], names: Sequence[str]) -> str:
    """The observation of a turn up to the end of its state: without the legal actions and what to answer.

    Args:
        text: The observation.
        legal: The ids that it lists, in its order.
        names: Their names.

    Raises:
        LayoutError: the text does not end with these actions.
    """
    asked = _asked(choice_lines(legal, names))
    if not text.endswith(asked):
        raise LayoutError(
            f"observation: a text that ends {text[-60:]!r} was given, allowed: one that ends with the list "
            f"of legal actions, as {asked[-60:]!r}"
        )
    return text[: -len(asked)]


def with_choices(text: str, legal: Sequence[int], names: Sequence[str]) -> str:
    """What :func:`without_choices` left, with these legal actions and what to answer."""
    return text + _asked(choice_lines(legal, names))


def render_end(
    variant: Variant, seat: int, returns: Sequence[float], score: float | None, result: str
) -> str:
    """The observation after the end: the outcome, which everyone sees."""
    told = "none" if score is None else f"{score:.3f}"
    listed = ", ".join(f"{value:g}" for value in returns)
    return (
        f"Game over: {variant.spec.name}\nYou were Player {seat}.\n\n"
        f"Returns: {listed}\nYour score: {told}\nResult: {result}"
    )


class SeatView:
    """What an opponent is shown of a state: ``task_gym.opponents.SeatView`` for games.

    Attributes:
        asked: What :meth:`legal_actions` last found, for the check of the opponent's action; None if the
            opponent did not ask. The backend sets it to None before every turn.
    """

    __slots__ = ("_rules", "_variant", "asked", "seat", "state")

    def __init__(self, variant: Variant, seat: int, rules: bool) -> None:
        self._variant, self._rules = variant, rules
        self.seat = seat
        self.state: State = None
        self.asked: list[int] | None = None

    def legal_actions(self) -> list[int]:
        """Legal action ids, ascending; never empty. The list is the caller's to change.

        Raises:
            EpisodeError: OpenSpiel left the seat without a legal action (see ``LocalBackend``).
        """
        legal: list[int] = self.state.legal_actions(self.seat)
        if not legal:
            raise EpisodeError(f"seat {self.seat} has no legal action, and the game is not over")
        self.asked = legal
        return legal.copy()

    def action_names(self) -> list[str]:
        """Names of the legal actions."""
        return self._variant.choices(self.state, self.seat, self.legal_actions())[0]

    def text(self) -> str:
        """The observation the environment would give this seat."""
        return render(self._variant, self.state, self.seat, self._rules)
