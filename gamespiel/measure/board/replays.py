"""One match of the benchmark as a file says that it was played: played again from its seed, and compared."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from game_gym.backends import Ending, GameTurn, LocalBackend
from game_gym.prompts import render
from game_gym.spec import State, Variant
from gamespiel.endpoints.chat import Message
from gamespiel.measure.board.agents import make_env_section
from gamespiel.measure.board.benchmark import TRACE, DealSet, is_search
from gamespiel.measure.board.episodes import (
    Choose,
    NoReplyError,
    Writer,
    make_baseline,
    make_row,
    play_by_replies,
    play_match,
    play_meeting,
    read_ending,
    sit_opposite,
)
from gamespiel.measure.journal import Row
from gamespiel.measure.play import Match
from task_gym.errors import TaskGymError
from task_gym.opponents import make_opponent, opponent_searches

if TYPE_CHECKING:
    import gymnasium as gym


DIGITS = 6
"""Decimal places of the probabilities that are kept; the least has 1 at the last place, as it was not 0."""

RARE = 1e15
"""One in how many episodes may have probabilities that are too low by chance; no board has 1e7 episodes."""


class ReplayError(TaskGymError):
    """An episode that was not played as its record says."""


@dataclass(frozen=True)
class Recorded:
    """The moves of a recorded game, for the agent's seat and for opponents that are not searched again.

    Args:
        history: Every action of the game.
        broke: Whether the game ended in a fault. The move that OpenSpiel refused is in no history: any is
            made in its place, and if the game goes on from there, it is another one.
    """

    history: Sequence[int]
    broke: bool = False

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> Recorded:
        """Returns the moves of a record."""
        return cls(row["history"] or [], row["result"] == "fault")

    def check(self, state: State) -> None:
        """Raises ReplayError unless the game is as recorded so far."""
        check_history(self.history, state.history())

    def find(self, state: State, seat: int) -> int | None:
        """Returns a seat's recorded action at a state; None if the record ends there."""
        at = len(state.history()) + (seat if state.is_simultaneous_node() else 0)
        return self.history[at] if at < len(self.history) else None

    def choose(
        self, variant: Variant, state: State, turn: GameTurn, agent: Choose | None = None
    ) -> int | None:
        """Returns the recorded action of the seat to move.

        Args:
            variant: The game.
            state: The state.
            turn: The turn there.
            agent: A baseline that decides anew, and must decide the same; None for the record's word.

        Raises:
            ReplayError: the game is not as recorded, or the action is not legal, or not the baseline's.
            StateTextError: the game broke at the text that a model read there.
        """
        self.check(state)
        action, at = self.find(state, turn.seat), len(state.history())
        if action is None and self.broke:
            if agent is not None:
                return agent(state, turn)
            render(variant, state, turn.seat, rules=False)
            return turn.legal[0]
        if agent is not None and (decided := agent(state, turn)) != action:
            raise ReplayError(f"move {at}: the file says action {action}, and the agent chooses {decided}")
        if action is None:
            raise ReplayError("the history ends where the agent is to move")
        check_legal(action, turn.legal, at)
        return action

    def make_bot(self, name: str, game: Any, spec: Any, seat: int) -> Any:
        """Returns an opponent as ``make_opponent`` does, but for a search one that plays the record."""
        return self if opponent_searches(name) else make_opponent(name, game, spec, seat)

    def restart(self, seed: int) -> None:
        """Does nothing: its moves are known."""

    def act(self, view: Any) -> int:
        """Returns the recorded move of the opponent who is to move.

        Raises:
            ReplayError: there is none, or it is not legal.
        """
        self.check(view.state)
        action = self.find(view.state, view.seat)
        if action is None:
            raise ReplayError("the history ends where the opponent is to move")
        check_legal(action, view.legal_actions(), len(view.state.history()))
        return action


def check_legal(action: Any, legal: Sequence[int], at: int) -> None:
    """Raises ReplayError unless an action is legal."""
    if action not in legal:
        raise ReplayError(f"move {at}: action {action} is not legal there")


def find_first_difference(written: Sequence[Any], played: Sequence[Any]) -> int | None:
    """Returns the first place in which two sequences differ; None as far as both go."""
    return next((at for at, (a, b) in enumerate(zip(written, played, strict=False)) if a != b), None)


def check_history(written: Sequence[int], played: Sequence[int], *, whole: bool = False) -> None:
    """Raises ReplayError at the first move in which a record differs from the game.

    Args:
        written: The record.
        played: The game so far.
        whole: Whether the game is over, so that the record must end there.
    """
    if written[: len(played)] == played and not (whole and len(written) > len(played)):
        return  # at the speed of lists: this is asked at every move
    if (at := find_first_difference(written, played)) is not None:
        raise ReplayError(
            f"move {at}: the file says action {written[at]}, and played again it is {played[at]}"
        )
    if len(written) < len(played) or (whole and len(written) > len(played)):
        raise ReplayError(
            f"the history has {len(written)} moves, and played again the game has {len(played)}"
        )


def check_chances(chances: Sequence[float], options: Sequence[int]) -> None:
    """Raises ReplayError unless there is a possible probability for each choice.

    Args:
        chances: The recorded probabilities of what was chosen.
        options: How many actions were legal, choice by choice.
    """
    if len(chances) != len(options):
        raise ReplayError(f"chances: {len(chances)} are there, and the agent chose {len(options)} times")
    for number, (chance, count) in enumerate(zip(chances, options, strict=True)):
        if not chance >= 10**-DIGITS or round(chance, DIGITS) != chance or (count == 1 and chance != 1):
            raise ReplayError(f"chances: choice {number} among {count} cannot have the probability {chance}")
    # If an action is drawn among n by its probability c, the mean of 1/(n c) is 1, and so is that of the
    # product over an episode: it is RARE or more in at most one of RARE (Markov). Half of the last place is
    # added, because probabilities are rounded.
    pairs = zip(chances, options, strict=True)
    if sum(math.log(count * (chance + 10**-DIGITS / 2)) for chance, count in pairs) < -math.log(RARE):
        raise ReplayError(f"chances: ones as low as these come at most once in {RARE:g} episodes")


def replay_match(match: Match, row: Mapping[str, Any], agent: Choose | None, *, search: bool) -> Ending:
    """Plays a recorded game again, from its seed; returns how it ends.

    Chance and opponents are drawn anew. The agent's own moves are those of the record, or of ``agent``.

    Args:
        match: The match.
        row: The record.
        agent: A baseline that decides anew; None for the recorded decisions.
        search: Whether opponents that search do so again. Otherwise their recorded moves only have to be
            legal.

    Raises:
        ReplayError: a move is another one, or none, or the recorded probabilities are not those of moves.
    """
    recorded, options = Recorded.read(row), list[int]()

    def choose(state: State, turn: GameTurn) -> int | None:
        action = recorded.choose(match.game.variant, state, turn, agent)
        options.append(len(turn.legal))  # not if it broke at the text, before the choice
        return action

    ending = play_match(match, choose, make_opponent if search else recorded.make_bot)
    if row["history"] is not None:
        check_history(recorded.history, ending.history or [], whole=True)
    if (chances := row.get("chances")) is not None:
        check_chances(chances, options)
    return ending


class RecordedReplies:
    """The replies of a record, one after the other, whoever of two agents is asked.

    Args:
        row: The record.
    """

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._row, self._used = row, 0

    def reply(self, messages: Sequence[Message]) -> str:
        """Returns the next reply.

        Raises:
            ReplayError: there is none, and the record does not say why.
            NoReplyError: there is none, as the record says.
        """
        replies = self._row["replies"]
        if self._used < len(replies):
            self._used += 1
            return str(replies[self._used - 1])
        if "error" not in self._row:
            raise ReplayError(f"the replies end after {len(replies)}, where the agent is to move")
        raise NoReplyError(self._row["error"])

    def check_end(self) -> None:
        """Raises ReplayError if replies are left."""
        if self._used < (count := len(self._row["replies"])):
            raise ReplayError(f"the episode is over after {self._used} of {count} replies")


def replay_replies(match: Match, row: Mapping[str, Any], *, list_actions: bool, search: bool) -> Row:
    """Plays a match again from the replies of its record; returns the record that it has now.

    Args:
        match: The match.
        row: The record.
        list_actions: Whether its prompts list the legal actions.
        search: Whether opponents that search do so again.

    Raises:
        ReplayError: there are too few replies, and the record does not say why; or too many.
    """
    recorded = RecordedReplies(row)
    make_bot = make_opponent if search else Recorded.read(row).make_bot
    record = play_by_replies(match, recorded.reply, list_actions=list_actions, make_bot=make_bot)
    recorded.check_end()
    return record


def replay_meeting(
    match: Match, row: Row, entries: Sequence[Mapping[str, Any]], deals: DealSet, *,
    list_actions: bool, search: bool,
) -> Row:  # fmt: skip
    """Plays a match of two agents again; returns the record that it has now.

    Args:
        match: The match, as the first agent has it.
        row: The record.
        entries: The board's entries of the two agents. Baselines decide anew, replies are read again, and the
            choices of models only have to be legal.
        deals: The deals.
        list_actions: Whether prompts list the legal actions.
        search: Whether searches decide anew.

    Raises:
        ReplayError: a move is another one, or none.
    """
    history, replies = Recorded.read(row), list[str]()
    written = RecordedReplies(row) if "replies" in row else None
    sides: list[Choose | Writer] = []
    for entry, side in zip(entries, (match, sit_opposite(match)), strict=True):
        if entry["kind"] == "endpoint" and written is not None:
            sides.append(Writer(match, written.reply, replies, list_actions))
            continue
        decides = entry["kind"] == "baseline" and (search or not is_search(entry["agent"]))
        agent = make_baseline(entry["agent"], side, deals) if decides else None
        if agent is not None and written is not None:
            # Its move at once with a reply that gave the game up is in no history; that is compared whole.
            sides.append(agent)
        else:
            sides.append(partial(history.choose, match.game.variant, agent=agent))
    record = play_meeting(match, sides, replies)
    if written is not None:
        written.check_end()
    elif row["history"] is not None:
        check_history(history.history, record["history"] or [], whole=True)
    return record


def replay_written(match: Match, row: Mapping[str, Any], entry: Mapping[str, Any], *, search: bool) -> Row:
    """Plays a match of a model that was here again, in the environment that read its replies.

    Args:
        match: The match.
        row: The record.
        entry: The board's entry of the agent.
        search: Whether opponents that search do so again.

    Raises:
        ReplayError: there are more or fewer replies than the game has turns.
    """
    env = _open_replies(entry["env_type"], tuple(sorted(entry["asking"].items())))
    if not match.task.startswith(TRACE):
        game: Any = env.unwrapped
        make_bot = make_opponent if search else Recorded.read(row).make_bot
        game._backend = LocalBackend(game.seeding, game.rules, make_bot=make_bot)
    info = env.reset(seed=match.reset[0], options=match.reset[1])[1]
    for number, reply in enumerate(row["replies"]):
        if "result" in info:
            raise ReplayError(f"the game is over after {number} of {len(row['replies'])} replies")
        info = env.step(reply)[4]
    if "result" not in info:
        raise ReplayError(f"the replies end after {len(row['replies'])}, where the agent is to move")
    history = None if match.task.startswith(TRACE) else info.get("history")
    ending = read_ending(info, history)
    return make_row(
        match, ending, replies=row["replies"], gave_up=row.get("gave_up"), error=ending.fault or None
    )


@lru_cache(maxsize=8)
def _open_replies(env_type: str, asking: tuple[tuple[str, Any], ...]) -> gym.Env[Any, Any]:
    from gamespiel.environments.making import make_reply_env

    return make_reply_env(make_env_section(env_type, dict(asking)))
