"""The texts that a player reads: pure functions of a state, a seat and whether the rules are included.

Affinetes' replies and parsers rely on parts of the layout: a line "Game: NAME", a line "You are Player N.",
the state headed "Current State:", and a block headed "Legal Actions:" with lines "  ID -> NAME", closed by a
line that begins "Your choice". Without the list, a line says how an action is written in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from game_gym.spec import State, Variant, choice_lines
from task_gym.contract import CLOSING, NAMED_CLOSING
from task_gym.errors import EpisodeError, GameError, LayoutError, quote

RULES_END = "\n# Current Game State\n"
"""The heading that ends the rules."""


NOTATION = "How to write an action: "
"""The beginning of the line that stands in the place of the list of legal actions."""


def render(variant: Variant, state: State, seat: int, rules: bool = True, list_actions: bool = True) -> str:
    """Returns the observation of ``seat``, which is to move at ``state``.

    It is equal on equal information states of the seat, whatever else differs between the states.
    """
    if not list_actions:
        return f"{_state_part(variant, state, seat, rules)}{_notation_part(variant)}"
    return render_turn(variant, state, seat, rules, state.legal_actions(seat))[0]


def render_turn(
    variant: Variant, state: State, seat: int, rules: bool, legal: Sequence[int]
) -> tuple[str, list[str]]:
    """Returns the observation and the legal actions' names, in the order of the ids in ``legal``."""
    names, block = variant.choices(state, seat, legal)
    return f"{_state_part(variant, state, seat, rules)}{_question_part(block)}", names


def _state_part(variant: Variant, state: State, seat: int, rules: bool) -> str:
    """Returns the part before the legal actions: the rules if wanted, the seat and the state."""
    described = variant.spec.describe(state, seat)
    if not isinstance(described, str):
        raise GameError(
            f"game: {variant.spec.name!r}: its describe returned {quote(described)}, allowed: a text"
        )
    head = _rules_part(variant) if rules else ""
    return f"{head}Game: {variant.spec.name}\nYou are Player {seat}.\n\nCurrent State:\n{described}"


def _rules_part(variant: Variant) -> str:
    """Returns the rules with their headings, up to the line "Game: NAME"."""
    return f"# Game Rules\n{variant.rules}\n{RULES_END}"


def _question_part(block: str) -> str:
    """Returns the part after the state: the legal actions' lines, and what to answer."""
    return f"\n\nLegal Actions:\n{block}\n\n{CLOSING}"


def _notation_part(variant: Variant) -> str:
    """Returns the part after the state if the legal actions are not listed: how an action is written."""
    return f"\n\n{describe_notation(variant)}\n\n{NAMED_CLOSING}"


def describe_notation(variant: Variant) -> str:
    """Returns the line that says how an action is written."""
    return f"{NOTATION}{variant.spec.notation or 'its name.'}"


def render_waiting(variant: Variant, state: State, seat: int, rules: bool = True) -> str:
    """Returns the observation of ``seat`` while another player is to move at ``state``: no legal actions."""
    return f"{_state_part(variant, state, seat, rules)}\n\nIt is not your turn."


def without_rules(text: str, variant: Variant) -> str:
    """Returns the observation of a turn without the rules that it begins with.

    Raises:
        LayoutError: the text does not begin with the rules of this variant.
    """
    head = _rules_part(variant)
    if not text.startswith(head):
        raise LayoutError(
            f"observation: a text that begins {text[:60]!r} was given, allowed: one that begins with the "
            f"rules of {variant.spec.name}"
        )
    return text[len(head) :]


def hide_choices(text: str, variant: Variant, legal: Sequence[int], names: Sequence[str]) -> str:
    """Returns the observation of a turn with how an action is written in the place of the list.

    Args:
        text: The observation.
        variant: The game.
        legal: The ids that it lists, in its order.
        names: Their names.

    Raises:
        LayoutError: the text does not end with these actions.
    """
    question = _question_part(choice_lines(legal, names))
    if not text.endswith(question):
        raise LayoutError(
            f"observation: a text that ends {text[-60:]!r} was given, allowed: one that ends with the list "
            f"of legal actions, as {question[-60:]!r}"
        )
    return text.removesuffix(question) + _notation_part(variant)


def render_end(
    variant: Variant, seat: int, returns: Sequence[float] | None, score: float | None, result: str
) -> str:
    """Returns the observation after the end: the outcome, which everyone sees."""
    score_text = "none" if score is None else f"{score:.3f}"
    listed = "unknown" if returns is None else ", ".join(f"{value:g}" for value in returns)
    return (
        f"Game over: {variant.spec.name}\nYou were Player {seat}.\n\n"
        f"Returns: {listed}\nYour score: {score_text}\nResult: {result}"
    )


@dataclass(slots=True, eq=False)
class SeatView:
    """The view that an opponent has of a state: ``task_gym.opponents.SeatView`` for games.

    Attributes:
        variant: The game that is played.
        seat: The seat to move.
        rules: Whether texts begin with the rules.
        state: The ``pyspiel.State``; the backend sets it.
        asked: The last result of ``legal_actions``, for the check of the opponent's action; None if the
            opponent did not ask. The backend sets it to None before every turn.
    """

    variant: Variant
    seat: int
    rules: bool
    state: State = None
    asked: list[int] | None = None

    def legal_actions(self) -> list[int]:
        """Returns the legal action ids, ascending; never empty. The caller may change the list.

        Raises:
            EpisodeError: OpenSpiel left the seat without a legal action (see ``LocalBackend``).
        """
        legal: list[int] = self.state.legal_actions(self.seat)
        if not legal:
            raise EpisodeError(f"seat {self.seat} has no legal action, and the game is not over")
        self.asked = legal
        return legal.copy()

    def action_names(self) -> list[str]:
        """Returns the names of the legal actions."""
        return self.variant.choices(self.state, self.seat, self.legal_actions())[0]

    def text(self) -> str:
        """Returns the observation that the environment would give this seat."""
        return render(self.variant, self.state, self.seat, self.rules)
