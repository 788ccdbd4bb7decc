"""The numbers and rules that every task environment keeps to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from task_gym.errors import IllegalActionError, check_choice

SUCCESS = 0.5
"""A score above this is a success."""

ILLEGAL_REWARD = -0.01
"""The reward of an illegal action."""

STRIKES = 3
"""Illegal actions in a row that give an episode up."""

ON_ILLEGAL = ("penalize", "forfeit", "raise")
"""The rules for an illegal action; see ``Strikes``."""

CLOSING = "Your choice (action ID only):"
"""The last line of an observation that asks for an action's number."""

NAMED_CLOSING = "Your choice (action name only):"
"""The last line of an observation that asks for an action's name."""


class Strikes:
    """Counts illegal actions in a row, and decides when they give the episode up.

    Args:
        rule: "penalize" (the third in a row gives up), "forfeit" (the first does) or "raise".

    Attributes:
        count: Illegal actions since the last legal one. The environment sets it back to 0.

    Raises:
        ArgumentError: there is no such rule.
    """

    __slots__ = ("_limit", "_raises", "count")

    def __init__(self, rule: str) -> None:
        check_choice("illegal", rule, ON_ILLEGAL)
        self._raises = rule == "raise"
        self._limit = STRIKES if rule == "penalize" else 1
        self.count = 0

    def add(self, message: str) -> bool:
        """Counts one more illegal action; returns whether it gives the episode up.

        Raises:
            IllegalActionError: the rule is "raise". Nothing is counted.
        """
        if self._raises:
            raise IllegalActionError(message)
        self.count += 1
        return self.count >= self._limit


def illegal_info(message: str) -> dict[str, Any]:
    """Returns the part of ``info`` that is there after an illegal action only."""
    return {"upstream_reward": ILLEGAL_REWARD, "error": {"type": "invalid_action", "message": message}}


def is_success(score: float | None) -> bool:
    """Returns whether a score is a success; None, after a fault, is none."""
    return score is not None and score > SUCCESS


def result_of(margin: float) -> str:
    """Returns "win", "draw" or "loss" for a margin above 0, at 0 or below 0."""
    return "win" if margin > 0 else "draw" if margin == 0 else "loss"


def ending_info(
    score: float | None,
    returns: Sequence[float] | None,
    result: str,
    history: Sequence[Any] | None,
    **more: Any,
) -> dict[str, Any]:
    """Returns the part of ``info`` that is there at the end only.

    Args:
        score: In [0, 1]; None after a fault.
        returns: One per seat; None if the backend cannot know them. They are left out then.
        result: "win", "draw", "loss", "cut" or "fault".
        history: The episode's actions; None as for ``returns``.
        **more: Placed after ``score``. Recorded games keep the order of the keys.
    """
    info = {"score": score, **more}
    info["success"] = is_success(score)
    if returns is not None:
        info["returns"] = returns
    info["result"] = result
    if history is not None:
        info["history"] = history
    return info
