"""The parts of the interface between the environment and a backend.

A backend plays chance, opponents and everything between two turns of the caller. The environment counts
turns and illegal actions itself. It calls ``start``, then ``play`` once per legal action until a turn has an
ending. ``forfeit`` or ``cut`` may come in place of a ``play``; after a cut the last turn's text and legal
actions stay shown. ``start`` may come at any time; it abandons the episode before. The environment never
changes a turn.

The same task, seed, opponent and actions must give the same turns, because a copy of an environment plays its
episode again, and compares ``history``; that is None if a backend cannot know it. A failure of the backend
itself, such as a lost connection, is a turn whose ending has the result "fault" and the score None. An
exception out of ``start`` or ``play`` goes to the caller, and no episode is under way then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from task_gym.contract import ending_info

OBSERVATION_LENGTH = 65536
"""The most characters that an observation may have."""


@dataclass(slots=True)
class Ending:
    """How an episode ended, for the seat of its last turn.

    Attributes:
        score: In [0, 1]; None after a fault, which is nobody's doing.
        scores: One per seat; None if the backend cannot know them.
        returns: One per seat; None if the backend cannot know them.
        result: "win", "draw", "loss", "cut" or "fault".
        history: Every action of the game, by chance and opponents too; None if the backend cannot know them.
        fault: The failure in one sentence; "" if nothing did, or the backend cannot say.

    The lists go to the caller, who may change them: each ending has its own.
    """

    score: float | None
    scores: list[float] | None
    returns: list[float] | None
    result: str
    history: list[int] | None
    fault: str = ""

    def info(self) -> dict[str, Any]:
        """Returns the part of ``info`` that is there at the end only; what is None is left out."""
        scores = {} if self.scores is None else {"scores": self.scores}
        info = ending_info(self.score, self.returns, self.result, self.history, **scores)
        if self.fault:
            info["fault"] = self.fault
        return info


@dataclass(slots=True)
class GameTurn:
    """A point at which the caller is to act, or the end.

    Attributes:
        seat: The seat to move; at the end, the caller's seat (with open seats, the one that moved last).
        text: Its observation; at the end, the closing text. Without texts it is empty before the end.
        legal: Legal action ids, ascending; empty at the end only.
        names: Their names, in the same order; none without texts.
        reward: The reward of upstream's session for the move that led here.
        ending: None before the end.
        opponent_illegal: Illegal actions by opponents in this episode so far; None if the backend does not
            count them, as when the opponent was registered with ``illegal="raise"``.
    """

    seat: int
    text: str
    legal: list[int]
    names: list[str]
    reward: float
    ending: Ending | None
    opponent_illegal: int | None = None
