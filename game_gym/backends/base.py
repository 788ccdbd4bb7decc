"""What the environment asks of a backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from game_gym.task import Task
from task_gym.contract import SUCCESS


@dataclass(slots=True)
class Ending:
    """How an episode ended, for the seat of its last turn.

    Attributes:
        score: In [0, 1]; None after a fault, which is nobody's doing.
        scores: One a seat.
        returns: One a seat.
        result: "win", "draw", "loss", "cut" or "fault".
        history: Every action of the game, chance and opponents included.
    """

    score: float | None
    scores: list[float]
    returns: list[float]
    result: str
    history: list[int]

    def info(self) -> dict[str, Any]:
        """What ``info`` holds at the end beside what it always holds."""
        return {
            "score": self.score,
            "scores": self.scores,
            "success": self.score is not None and self.score > SUCCESS,
            "returns": self.returns,
            "result": self.result,
            "history": self.history,
        }


@dataclass(slots=True)
class Turn:
    """A point at which the caller is to act, or the end.

    Attributes:
        seat: The seat to move; at the end, the caller's seat (with open seats, the one that moved last).
        text: Its observation.
        legal: Legal action ids, ascending; empty at the end.
        names: Their names, in the same order.
        reward: What upstream's session pays for the move that led here.
        ending: None before the end.
        opponent_illegal: Illegal actions by opponents in this episode so far; None if the opponent was
            registered with no rule that goes on after one.
    """

    seat: int
    text: str
    legal: list[int]
    names: list[str]
    reward: float
    ending: Ending | None
    opponent_illegal: int | None = None


class Backend(Protocol):
    """Plays episodes: chance, opponents and everything between two turns of the caller."""

    def start(self, task: Task, seed: int, opponent: str) -> Turn:
        """Begin an episode and play up to the caller's first turn."""

    def play(self, action: int) -> Turn:
        """Make a legal move and play up to the caller's next turn."""

    def forfeit(self) -> Turn:
        """Give the game up for the seat to move."""

    def cut(self) -> Ending:
        """Stop a game that could have gone on."""
