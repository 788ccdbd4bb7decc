"""One match of the benchmark, move by move: as an agent plays it, or as a file says that it was played."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import game_gym.opponents  # noqa: F401  (registers them)
from game_gym.backends import Ending, GameTurn, LocalBackend
from game_gym.prompts import SeatView
from game_gym.score import outcome
from game_gym.spec import State
from gamespiel.endpoints.chat import Message
from gamespiel.endpoints.games import ChatAgent
from gamespiel.measure.board.agents import make_env_section
from gamespiel.measure.board.benchmark import NOBODY, TRACE, DealSet, is_search, resolve_opponent
from gamespiel.measure.journal import Row
from gamespiel.measure.play import Match
from task_gym.errors import OpponentFaultError, TaskGymError
from task_gym.opponents import OPEN, make_opponent, opponent_searches

if TYPE_CHECKING:
    import gymnasium as gym

    from trace_gym.envs.choice import CodeTraceChoiceEnv
    from trace_gym.envs.text import CodeTraceEnv

Choose = Callable[[State, GameTurn], "int | None"]
"""A state and the turn there to an action; None gives the game up."""

Reply = Callable[[Sequence[Message]], str]
"""A conversation to the agent's next reply."""

PROTOCOL = "evaluate"
"""The protocol that expands seeds: the one that agents behind endpoints play."""


class ReplayError(TaskGymError):
    """An episode that was not played as its record says."""


class NoReplyError(Exception):
    """The agent gives no further reply, and so loses the episode; the message says why."""


def make_row(match: Match, ending: Ending, **more: Any) -> Row:
    """Returns an episode as plain data; see docs/leaderboard.md. Entries that are None are left out."""
    row = {
        "task": match.task,
        "deal": match.deal,
        "task_id": match.task_id,
        "seed": match.seed,
        "seat": match.seat,
        "opponent": match.opponent,
        "score": None if ending.score is None else float(ending.score),
        "result": ending.result,
        "returns": None if ending.returns is None else [float(value) for value in ending.returns],
        "history": None if ending.history is None else [int(action) for action in ending.history],
    }
    return row | {key: value for key, value in more.items() if value is not None}


def read_ending(info: Mapping[str, Any], history: list[int] | None) -> Ending:
    """Returns how an environment's episode ended, from its last info."""
    fault = str(info.get("fault", ""))
    return Ending(info["score"], None, info.get("returns"), info["result"], history, fault)


# -- games -------------------------------------------------------------------------------------------------


def play_match(
    match: Match, choose: Choose, make_bot: Any = make_opponent, rival: Choose | None = None
) -> Ending:
    """Plays a game to its end; returns how it ended for the agent.

    Args:
        match: The match.
        choose: The agent.
        make_bot: Makes the opponents, as ``task_gym.opponents.make_opponent``.
        rival: The agent in the other seat of two, in the place of opponents.

    Raises:
        ReplayError: ``choose`` or ``rival`` says that it was not played so.
    """
    backend = LocalBackend(PROTOCOL, rules=False, make_bot=make_bot)
    opponent = OPEN if rival else "random" if match.opponent == NOBODY else match.opponent
    turn = backend.start(match.game, match.seed, opponent, match.seat)
    while turn.ending is None:
        to_move = rival if rival and turn.seat != match.seat else choose
        try:
            action = to_move(backend.state, turn)
        except OpponentFaultError as error:  # the agent is a search that broke down
            lost = backend.cut()
            return Ending(None, None, lost.returns, "fault", lost.history, str(error))
        turn = backend.forfeit() if action is None else backend.play(action)
    return _see_from(match.seat, turn.ending) if rival else turn.ending


def _see_from(seat: int | None, ending: Ending) -> Ending:
    """Returns an ending as a seat sees it: the backend's is that of the seat that moved last."""
    if ending.result == "fault":
        return ending
    assert seat is not None and ending.scores is not None and ending.returns is not None
    score = ending.scores[seat]
    return dataclasses.replace(ending, score=score, result=outcome(ending.returns, seat, score))


def sit_opposite(match: Match) -> Match:
    """Returns a match of two seats as the agent in the other one has it, with noise of its own."""
    assert match.seat is not None, "games have seats"
    return match._replace(seat=1 - match.seat, place=match.place + 2)


def make_baseline(name: str, match: Match, deals: DealSet) -> Choose:
    """Returns a baseline in one match: an opponent in the agent's seat, with noise that the deal decides.

    Args:
        name: A baseline's name, or that of another opponent, as "policy:RUN".
        match: The match.
        deals: The deals.
    """
    assert match.seat is not None, "games have seats"
    variant = match.game.variant
    bot = make_opponent(resolve_opponent(name, variant), variant.game, variant.spec, match.seat)
    bot.restart(deals.draw_seed("noise", match.task, match.deal, match.place))
    view = SeatView(variant, match.seat, rules=True)

    def choose(state: State, turn: GameTurn) -> int:
        view.state = state
        return int(bot.act(view))

    return choose


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

    def choose(self, state: State, turn: GameTurn, agent: Choose | None = None) -> int:
        """Returns the recorded action of the seat to move.

        Args:
            state: The state.
            turn: The turn there.
            agent: A baseline that decides anew, and must decide the same; None for the record's word.

        Raises:
            ReplayError: the game is not as recorded, or the action is not legal, or not the baseline's.
        """
        self.check(state)
        action, at = self.find(state, turn.seat), len(state.history())
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
    if (at := find_first_difference(written, played)) is not None:
        raise ReplayError(
            f"move {at}: the file says action {written[at]}, and played again it is {played[at]}"
        )
    if len(written) < len(played) or (whole and len(written) > len(played)):
        raise ReplayError(
            f"the history has {len(written)} moves, and played again the game has {len(played)}"
        )


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
    recorded, options = Recorded(row["history"] or []), list[int]()

    def choose(state: State, turn: GameTurn) -> int:
        options.append(len(turn.legal))
        return recorded.choose(state, turn, agent)

    ending = play_match(match, choose, make_opponent if search else recorded.make_bot)
    if row["history"] is not None:
        check_history(recorded.history, ending.history or [], whole=True)
    if (chances := row.get("chances")) is not None:
        check_chances(chances, options)
    return ending


def check_chances(chances: Sequence[float], options: Sequence[int]) -> None:
    """Raises ReplayError unless there is a possible probability for each choice.

    Args:
        chances: The recorded probabilities of what was chosen.
        options: How many actions were legal, choice by choice.
    """
    if len(chances) != len(options):
        raise ReplayError(f"chances: {len(chances)} are there, and the agent chose {len(options)} times")
    for number, (chance, count) in enumerate(zip(chances, options, strict=True)):
        if not chance > 0 or (count == 1 and chance != 1):
            raise ReplayError(f"chances: choice {number} among {count} cannot have the probability {chance}")


# -- agents that write -------------------------------------------------------------------------------------


class Writer:
    """An agent that writes, in one game.

    Args:
        match: The match.
        reply: Gives its replies.
        replies: The replies so far, to which its own are added.
        list_actions: Whether its prompts list the legal actions; without the list a reply is a name.

    Attributes:
        error: Why it gave no further reply; None if it always did.
    """

    def __init__(self, match: Match, reply: Reply, replies: list[str], list_actions: bool) -> None:
        self._reply, self._replies = reply, replies
        self._agent = ChatAgent(match.game.variant, self._answer, list_actions)
        self.error: str | None = None

    def _answer(self, messages: Sequence[Message]) -> str:
        text = self._reply(messages)
        self._replies.append(text)
        return text

    def choose(self, state: State, turn: GameTurn) -> int | None:
        """Returns its action; None if it gives the game up."""
        try:
            return self._agent.move(state, turn.seat, turn.legal, turn.names)
        except NoReplyError as failure:
            self.error = str(failure)
            return None

    @property
    def gave_up(self) -> bool:
        """Whether it gave the game up."""
        return self._agent.gave_up or self.error is not None


def make_game_row(match: Match, ending: Ending, writers: Sequence[Writer], replies: list[str]) -> Row:
    """Returns the record of a game in which agents wrote; nobody gives up a game that breaks."""
    gave_up = ending.result != "fault" and any(writer.gave_up for writer in writers)
    error = next((writer.error for writer in writers if writer.error is not None), None)
    return make_row(match, ending, replies=replies, gave_up=gave_up or None, error=ending.fault or error)


def play_by_replies(match: Match, reply: Reply, *, list_actions: bool, make_bot: Any = make_opponent) -> Row:
    """Plays a match by the rules of upstream's ``evaluate``; returns its record, which has the replies.

    Args:
        match: The match.
        reply: Gives the agent's replies.
        list_actions: Whether the prompts list the legal actions; without the list a reply is a name.
        make_bot: Makes the opponents, as ``task_gym.opponents.make_opponent``.
    """
    replies: list[str] = []
    if match.task.startswith(TRACE):
        error: str | None = None
        env = _open_texts()
        prompt = env.reset(seed=match.reset[0], options=match.reset[1])[0]
        ending = Ending(0.0, None, [0.0], "loss", None, "")
        try:
            replies.append(text := reply([{"role": "user", "content": prompt}]))
            if text:  # upstream compares no empty reply
                ending = read_ending(env.step(text)[4], None)
        except NoReplyError as failure:
            error = str(failure)
        return make_row(match, ending, replies=replies, error=error)
    writer = Writer(match, reply, replies, list_actions)
    return make_game_row(match, play_match(match, writer.choose, make_bot), [writer], replies)


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
    make_bot = make_opponent if search else Recorded(row["history"] or []).make_bot
    record = play_by_replies(match, recorded.reply, list_actions=list_actions, make_bot=make_bot)
    recorded.check_end()
    return record


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


# -- agents that meet each other ---------------------------------------------------------------------------


def play_meeting(match: Match, sides: Sequence[Choose | Writer], replies: list[str]) -> Row:
    """Plays a match of two agents; returns its record: scores are those of the first.

    Args:
        match: The match, as the first agent has it.
        sides: The two agents.
        replies: The replies of those that write, in the order in which they come.
    """
    writers = [side for side in sides if isinstance(side, Writer)]
    choose, rival = (side.choose if isinstance(side, Writer) else side for side in sides)
    ending = play_match(match, choose, rival=rival)
    if writers:
        return make_game_row(match, ending, writers, replies)
    return make_row(match, ending, error=ending.fault or None)


def replay_meeting(
    match: Match, row: Row, entries: Sequence[Mapping[str, Any]], deals: DealSet, *,
    list_actions: bool, search: bool,
) -> Row:  # fmt: skip
    """Plays a match of two agents again; returns the record that it has now.

    Args:
        match: The match, as the first agent has it.
        row: The record.
        entries: What the board says of the two agents. Baselines decide anew, replies are read again, and the
            choices of models only have to be legal.
        deals: The deals.
        list_actions: Whether prompts list the legal actions.
        search: Whether searches decide anew.

    Raises:
        ReplayError: a move is another one, or none.
    """
    history, replies = Recorded(row["history"] or []), list[str]()
    written = RecordedReplies(row) if "replies" in row else None
    sides: list[Choose | Writer] = []
    for entry, side in zip(entries, (match, sit_opposite(match)), strict=True):
        if entry["kind"] == "endpoint" and written is not None:
            sides.append(Writer(match, written.reply, replies, list_actions))
            continue
        decides = entry["kind"] == "baseline" and (search or not is_search(entry["agent"]))
        agent = make_baseline(entry["agent"], side, deals) if decides else None
        sides.append(partial(history.choose, agent=agent))
    record = play_meeting(match, sides, replies)
    if written is not None:
        written.check_end()
    elif row["history"] is not None:
        check_history(history.history, record["history"] or [], whole=True)
    return record


def replay_written(match: Match, row: Mapping[str, Any], entry: Mapping[str, Any]) -> Row:
    """Plays a match of a model that was here again, in the environment that read its replies.

    Args:
        match: The match.
        row: The record.
        entry: What the board says of the agent.

    Raises:
        ReplayError: there are more or fewer replies than the game has turns.
    """
    env = _open_replies(entry["env_type"], tuple(sorted(entry["asking"].items())))
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


@lru_cache(maxsize=1)
def _open_texts() -> CodeTraceEnv:
    from trace_gym.envs.text import CodeTraceEnv

    return CodeTraceEnv()


@lru_cache(maxsize=8)
def _open_replies(env_type: str, asking: tuple[tuple[str, Any], ...]) -> gym.Env[Any, Any]:
    from gamespiel.environments.making import make_reply_env

    return make_reply_env(make_env_section(env_type, dict(asking)))


# -- traces with a choice of outputs -----------------------------------------------------------------------


@lru_cache(maxsize=1)
def open_choices() -> CodeTraceChoiceEnv:
    """Returns the environment of traces with a choice of outputs; there is one in a process."""
    from trace_gym.envs.choice import CodeTraceChoiceEnv

    return CodeTraceChoiceEnv()


def choose_output(match: Match, name: str, deals: DealSet) -> Row:
    """Plays a trace with a baseline: ``random`` chooses any of the outputs, ``first`` the first."""
    drawn = deals.draw_seed("noise", match.task, match.deal, match.place) if name == "random" else 0
    return pick_output(match, drawn % count_outputs(match))


def count_outputs(match: Match) -> int:
    """Returns the number of outputs of a trace among which one is chosen."""
    return len(open_choices().reset(seed=match.reset[0], options=match.reset[1])[1]["legal_actions"])


def pick_output(match: Match, action: int) -> Row:
    """Returns the record of a trace with one of its outputs chosen."""
    env = open_choices()
    env.reset(seed=match.reset[0], options=match.reset[1])
    return make_row(match, read_ending(env.step(action)[4], [action]))
