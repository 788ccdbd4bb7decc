"""One episode of the benchmark, move by move: as an agent plays it, or as a file says that it was played."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import game_gym.opponents  # noqa: F401  (registers them)
from game_gym.backends import Ending, GameTurn, LocalBackend
from game_gym.prompts import SeatView
from game_gym.spec import State
from gamespiel.leaderboard.benchmark import NOBODY, DealSet, Hand, load_task, resolve_opponent
from task_gym.errors import OpponentFaultError, TaskGymError
from task_gym.opponents import make_opponent, opponent_searches

Row = dict[str, Any]
"""An episode as plain data; see docs/leaderboard.md."""

Choose = Callable[[State, GameTurn], "int | None"]
"""A state and the turn there to an action; None gives the game up."""

PROTOCOL = "evaluate"
"""The protocol that expands seeds: the one that agents behind endpoints play."""


class ReplayError(TaskGymError):
    """An episode that was not played as its record says."""


def make_row(hand: Hand, ending: Ending, **more: Any) -> Row:
    """Returns an episode as plain data."""
    row = {
        **hand._asdict(),
        "score": None if ending.score is None else float(ending.score),
        "result": ending.result,
        "returns": None if ending.returns is None else [float(value) for value in ending.returns],
        "history": None if ending.history is None else [int(action) for action in ending.history],
    }
    del row["place"]
    return row | {key: value for key, value in more.items() if value is not None}


def play_hand(hand: Hand, choose: Choose, make_bot: Any = make_opponent) -> Ending:
    """Plays a game to its end; returns how it ended.

    Args:
        hand: The episode.
        choose: The agent.
        make_bot: Makes the opponents, as ``task_gym.opponents.make_opponent``.

    Raises:
        ReplayError: ``choose`` says that it was not played so.
    """
    backend = LocalBackend(PROTOCOL, rules=False, make_bot=make_bot)
    opponent = "random" if hand.opponent == NOBODY else hand.opponent
    turn = backend.start(load_task(hand.task_id), hand.seed, opponent, hand.seat)
    while turn.ending is None:
        try:
            action = choose(backend.state, turn)
        except OpponentFaultError as error:  # the agent is a search that broke down
            lost = backend.cut()
            return Ending(None, None, lost.returns, "fault", lost.history, str(error))
        turn = backend.forfeit() if action is None else backend.play(action)
    return turn.ending


@dataclass
class BaselineAgent:
    """A baseline in one episode: an opponent in the agent's seat, with noise that the deal decides.

    Args:
        name: The baseline.
        hand: The episode.
        deals: The deals, which its noise follows from.
    """

    name: str
    hand: Hand
    deals: DealSet

    def __post_init__(self) -> None:
        variant, hand = load_task(self.hand.task_id).variant, self.hand
        playing = resolve_opponent(self.name, variant)
        self._bot = make_opponent(playing, variant.game, variant.spec, hand.seat)
        self._bot.restart(self.deals.draw_seed("noise", hand.task, hand.deal, hand.place))
        self._view = SeatView(variant, hand.seat, rules=True)

    def __call__(self, state: State, turn: GameTurn) -> int:
        """Returns its action."""
        self._view.state = state
        return int(self._bot.act(self._view))


@dataclass(frozen=True)
class Recorded:
    """The moves of a recorded game, for the agent's seat and for opponents that are not searched again.

    Args:
        history: Every action of the game.
    """

    history: Sequence[int]

    def check(self, state: State) -> None:
        """Raises ReplayError unless the game is as recorded so far."""
        check_history(self.history, state.history())

    def find(self, state: State, seat: int) -> int | None:
        """Returns a seat's recorded action at a state; None if the record ends there."""
        at = len(state.history()) + (seat if state.is_simultaneous_node() else 0)
        return self.history[at] if at < len(self.history) else None


class RecordedOpponent:
    """Plays the recorded moves of a seat."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded

    def restart(self, seed: int) -> None:
        """Does nothing: its moves are known."""

    def act(self, view: Any) -> int:
        """Returns the recorded move.

        Raises:
            ReplayError: there is none, or it is not legal.
        """
        self._recorded.check(view.state)
        action = self._recorded.find(view.state, view.seat)
        if action is None:
            raise ReplayError("the history ends where the opponent is to move")
        check_legal(action, view.legal_actions(), len(view.state.history()))
        return action


def check_legal(action: Any, legal: Sequence[int], at: int) -> None:
    """Raises ReplayError unless an action is legal."""
    if action not in legal:
        raise ReplayError(f"move {at}: action {action} is not legal there")


def check_history(written: Sequence[int], played: Sequence[int], *, whole: bool = False) -> None:
    """Raises ReplayError at the first move in which a record differs from the game.

    Args:
        written: The record.
        played: The game so far.
        whole: Whether the game is over, so that the record must end there.
    """
    for at, (theirs, ours) in enumerate(zip(written, played, strict=False)):
        if theirs != ours:
            raise ReplayError(f"move {at}: the file says action {theirs}, and played again it is {ours}")
    if len(written) < len(played) or (whole and len(written) > len(played)):
        raise ReplayError(
            f"the history has {len(written)} moves, and played again the game has {len(played)}"
        )


def replay_hand(hand: Hand, row: Mapping[str, Any], agent: Choose | None, *, search: bool) -> Ending:
    """Plays a recorded game again, from its seed; returns how it ends.

    Chance and opponents are drawn anew. The agent's own moves are those of the record, or of ``agent``.

    Args:
        hand: The episode.
        row: The record.
        agent: A baseline that decides anew; None for the recorded decisions.
        search: Whether opponents that search do so again. Otherwise their recorded moves only have to be
            legal.

    Raises:
        ReplayError: a move is another one, or none.
    """
    recorded = Recorded(row["history"] or [])

    def make_bot(name: str, game: Any, spec: Any, seat: int) -> Any:
        if not search and opponent_searches(name):
            return RecordedOpponent(recorded)
        return make_opponent(name, game, spec, seat)

    def choose(state: State, turn: GameTurn) -> int | None:
        recorded.check(state)
        action = recorded.find(state, turn.seat)
        if agent is not None:
            decided = agent(state, turn)
            if decided != action:
                at = len(state.history())
                raise ReplayError(
                    f"move {at}: the file says action {action}, and the agent chooses {decided}"
                )
        if action is None:
            if not row.get("gave_up"):
                raise ReplayError("the history ends where the agent is to move")
            return None
        check_legal(action, turn.legal, len(state.history()))
        return action

    ending = play_hand(hand, choose, make_bot)
    if row["history"] is not None:
        check_history(recorded.history, ending.history or [], whole=True)
    return ending
