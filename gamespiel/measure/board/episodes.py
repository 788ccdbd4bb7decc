"""One match of the benchmark, move by move, as an agent plays it, or two that meet."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import game_gym.opponents  # noqa: F401  (registers them)
from game_gym.backends import Ending, GameTurn, LocalBackend
from game_gym.prompts import SeatView
from game_gym.score import outcome
from game_gym.spec import State
from gamespiel.endpoints.chat import Message
from gamespiel.endpoints.games import ChatAgent
from gamespiel.measure.board.benchmark import NOBODY, TRACE, DealSet, resolve_opponent
from gamespiel.measure.journal import Row
from gamespiel.measure.play import Match
from task_gym.errors import OpponentFaultError, StateTextError
from task_gym.opponents import OPEN, make_opponent

if TYPE_CHECKING:
    from trace_gym.envs.choice import CodeTraceChoiceEnv
    from trace_gym.envs.text import CodeTraceEnv

Choose = Callable[[State, GameTurn], "int | None"]
"""A state and the turn there to an action; None gives the game up."""

Reply = Callable[[Sequence[Message]], str]
"""A conversation to the agent's next reply."""

PROTOCOL = "evaluate"
"""The protocol that expands seeds: the one that agents behind endpoints play."""


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
    backend = LocalBackend(PROTOCOL, rules=False, texts=False, make_bot=make_bot)
    opponent = OPEN if rival else "random" if match.opponent == NOBODY else match.opponent
    turn = backend.start(match.game, match.seed, opponent, match.seat)
    while turn.ending is None:
        to_move = rival if rival and turn.seat != match.seat else choose
        try:
            action = to_move(backend.state, turn)
        except (OpponentFaultError, StateTextError) as error:  # a search broke down, or no text can be had
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
            return self._agent.move(state, turn.seat, turn.legal)
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


@lru_cache(maxsize=1)
def _open_texts() -> CodeTraceEnv:
    from trace_gym.envs.text import CodeTraceEnv

    return CodeTraceEnv()


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
