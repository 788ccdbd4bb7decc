"""The players of a board: each kind of agent, ready to play the matches of a deal."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from rich.console import Console
from typing_extensions import TypedDict

from gamespiel.agents.rollout import Episode, OnStep
from gamespiel.endpoints import EPISODE_S
from gamespiel.endpoints.at_once import play_at_once
from gamespiel.endpoints.chat import LOST, Chat, EndpointError, Message
from gamespiel.endpoints.completion import Usage
from gamespiel.measure.agents import Agent, load_policy
from gamespiel.measure.board.benchmark import TRACE, DealSet
from gamespiel.measure.board.episodes import (
    Choose,
    NoReplyError,
    Writer,
    choose_output,
    make_baseline,
    make_row,
    play_by_replies,
    play_match,
    play_meeting,
    read_ending,
    sit_opposite,
)
from gamespiel.measure.board.file import LONGEST_ERROR, LONGEST_REPLY, TOKENS, BoardError, explain_shape
from gamespiel.measure.board.replays import DIGITS
from gamespiel.measure.journal import Journal, Row
from gamespiel.measure.options import EndpointOptions
from gamespiel.measure.play import EndpointPlayer, Keep, Match, MatchPlayer, make_policy_player
from gamespiel.policy_opponent import find_policy
from gamespiel.tracks import MASKED, UNLISTED
from task_gym.remote.protocol import MOST_COUNTED
from task_gym.replies import visible

if TYPE_CHECKING:  # baselines play without a learning library
    from gamespiel.agents.policy import LLMPolicy


@with_config(ConfigDict(extra="forbid", strict=True))
class RequestShape(TypedDict):
    """The types of a request to an endpoint: its reply, or why there was none, and what that cost."""

    place: Annotated[int, Field(ge=0)]
    number: Annotated[int, Field(ge=0)]
    failed: bool
    text: Annotated[str, Field(max_length=LONGEST_REPLY)]
    prompt_tokens: Annotated[int, Field(ge=0, lt=MOST_COUNTED)]
    completion_tokens: Annotated[int, Field(ge=0, lt=MOST_COUNTED)]
    seconds: Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


_REQUEST = TypeAdapter(RequestShape)

Requests = Journal[tuple[int, int]]
"""The requests of one deal, by the place of their match and their number there."""


def open_requests(file: Path) -> Requests:
    """Returns the requests of a deal that was begun before, if there is a file of them.

    Endpoints are not asked again: who played badly, and was lost then, would have a second try. A reply is in
    the file before it is played, so a kill loses only requests that are not answered yet.

    Raises:
        BoardError: the file cannot be read.
    """

    def find_key(row: Row) -> tuple[int, int]:
        try:
            _REQUEST.validate_python(row)
        except ValidationError as error:
            raise BoardError(explain_shape(error)) from error
        return row["place"], row["number"]

    return Journal(file, find_key, BoardError, "without this file, its deal is played from the beginning")


class Opened:
    """The models of a process, each opened once, however many players ask it.

    Args:
        options: The options of endpoints.

    Attributes:
        options: As given.
        requests: The requests of the deal under way.
    """

    requests: Requests

    def __init__(self, options: EndpointOptions) -> None:
        self.options = options
        self._chats: dict[str, Chat] = {}
        self._policies: dict[str, LLMPolicy] = {}

    def open_chat(self, agent: Agent) -> Chat:
        """Returns the connections to an agent behind an endpoint."""
        if agent.spec not in self._chats:
            self._chats[agent.spec] = self.options.open_chat(agent.spec)
        return self._chats[agent.spec]

    def load(self, agent: Agent) -> LLMPolicy:
        """Returns the policy of an agent that is here."""
        if agent.spec not in self._policies:
            self._policies[agent.spec] = load_policy(agent.config, agent.checkpoint, Console(quiet=True))[0]
        return self._policies[agent.spec]


def make_player(agent: Agent, deals: DealSet, track: str, opened: Opened) -> MatchPlayer:
    """Returns an agent that is ready to play."""
    if agent.kind == "baseline":
        return BaselinePlayer(agent.spec, deals)
    if agent.kind == "endpoint":
        play_one = partial(_play_endpoint, track != UNLISTED, opened)
        return EndpointPlayer(opened.open_chat(agent), opened.options.concurrency, play_one)
    return make_policy_player(
        opened.load(agent),
        agent.config,
        lambda match: deals.draw_seed("noise", match.task, match.deal),
        record=partial(_record_episode, track != MASKED),
        replies=track != MASKED,
    )


def play_deal(player: MatchPlayer, matches: Sequence[Match]) -> list[Row]:
    """Plays the matches of a deal; returns their records in the same order."""
    rows = dict[int, Row]()

    def keep(match: Match, row: Row) -> None:
        rows[match.place] = row

    player.play(matches, keep, lambda over, turns: None)
    return [rows[match.place] for match in matches]


class BaselinePlayer:
    """Plays with a baseline, move by move.

    Args:
        name: The baseline.
        deals: The deals, which its noise follows from.
    """

    def __init__(self, name: str, deals: DealSet) -> None:
        self._name, self._deals = name, deals

    def play(self, matches: Sequence[Match], keep: Keep, on_step: OnStep) -> None:
        """Plays the matches one by one."""
        for match in matches:
            if match.task.startswith(TRACE):
                keep(match, choose_output(match, self._name, self._deals))
                continue
            ending = play_match(match, make_baseline(self._name, match, self._deals))
            keep(match, make_row(match, ending, error=ending.fault or None))

    def close(self) -> None:
        """Does nothing."""


class MeetingPlayer:
    """Plays two agents against each other.

    Args:
        agents: The agents.
        deals: The deals, which their noise follows from.
        track: The board's track.
        opened: The models.
    """

    def __init__(self, agents: tuple[Agent, Agent], deals: DealSet, track: str, opened: Opened) -> None:
        self._agents, self._deals, self._opened = agents, deals, opened
        self._list_actions = track != UNLISTED
        self._chats = {agent.name: opened.open_chat(agent) for agent in agents if agent.kind == "endpoint"}
        for agent in agents:
            if agent.checkpoint is not None:
                find_policy(str(agent.checkpoint)).use(opened.load(agent))

    def play(self, matches: Sequence[Match], keep: Keep, on_step: OnStep) -> None:
        """Plays the matches: one by one, or several at once if an agent is behind an endpoint."""

        def play_one(match: Match) -> None:
            keep(match, self._play_one(match))

        if self._chats:
            play_at_once(matches, play_one, self.close, self._opened.options.concurrency)
        else:
            for match in matches:
                play_one(match)

    def _play_one(self, match: Match) -> Row:
        replies: list[str] = []
        sides: list[Choose | Writer] = []
        for agent, side in zip(self._agents, (match, sit_opposite(match)), strict=True):
            if (chat := self._chats.get(agent.name)) is not None:
                asked = _Asked(chat, side, self._opened)
                sides.append(Writer(match, asked.reply, replies, self._list_actions))
            else:
                name = agent.spec if agent.checkpoint is None else f"policy:{agent.checkpoint}"
                sides.append(make_baseline(name, side, self._deals))
        return play_meeting(match, sides, replies)

    def close(self) -> None:
        """Closes the connections."""
        for chat in self._chats.values():
            chat.close()


class _Asked:
    """Asks a model behind an endpoint in one episode, and keeps what it says and what that costs.

    Args:
        chat: The model.
        match: The episode, as the model has it.
        opened: The options, and the requests of this deal so far.
    """

    def __init__(self, chat: Chat, match: Match, opened: Opened) -> None:
        self._chat, self._match, self._requests = chat, match, opened.requests
        self._trace = match.task.startswith(TRACE)
        most = opened.options.episode_s
        self._most = EPISODE_S["trace" if self._trace else "game"] if most is None else most
        self._seconds, self._spent, self._counted, self._number = 0.0, Usage(), True, 0

    def reply(self, messages: Sequence[Message]) -> str:
        """Returns the model's next reply: the one that it gave before a stop, or else a new one.

        Raises:
            NoReplyError: there is none, and the episode is lost by that.
            EndpointError: the endpoint is away or refuses.
        """
        key = self._match.place, self._number
        if (request := self._requests.played.get(key)) is None:
            request = dict(zip(("place", "number"), key, strict=True)) | self._ask(messages)
            self._requests.keep(request)
        self._number += 1
        self._seconds += request["seconds"]
        if request["failed"]:
            raise NoReplyError(request["text"])
        self._spent.add(Usage(*(request[name] for name in TOKENS)))
        self._counted &= request["prompt_tokens"] > 0
        return str(request["text"])

    def _ask(self, messages: Sequence[Message]) -> Row:
        began, usage, failed = time.monotonic(), Usage(), True
        try:
            # The others' moves do not count: they could play slowly.
            deadline = began + self._most - self._seconds
            text, usage = self._chat.request_reply(messages, self._match.seed, deadline)
            text, failed = (text if self._trace else visible(text))[:LONGEST_REPLY], False
        except TimeoutError:
            text = f"its replies took {self._most:g} s"
        except EndpointError as error:
            # Requests of this episode that were answered before a stop are not asked again.
            if self._chat.classify_failure(error, answered=self._number > 0) == LOST:
                raise
            text = str(error)[:LONGEST_ERROR]
        tokens = {name: getattr(usage, name) for name in TOKENS}
        return {"failed": failed, "text": text, **tokens, "seconds": time.monotonic() - began}

    @property
    def cost(self) -> dict[str, float]:
        """The seconds, and the tokens if the endpoint counts them."""
        cost: dict[str, float] = {"seconds": round(self._seconds, 3)}
        if self._counted:
            cost |= {name: min(getattr(self._spent, name), MOST_COUNTED - 1) for name in TOKENS}
        return cost


def _play_endpoint(list_actions: bool, opened: Opened, chat: Chat, match: Match) -> Row:
    """Plays a match with a model behind an endpoint.

    Raises:
        EndpointError: the endpoint is away or refuses: the deal is not over, and can be gone on with.
    """
    asked = _Asked(chat, match, opened)
    return play_by_replies(match, asked.reply, list_actions=list_actions) | {"cost": asked.cost}


def _record_episode(replies: bool, match: Match, episode: Episode) -> Row:
    """Returns the record of an episode of a model that is here, by replies or behind its mask."""
    info = episode.info
    trace = replies and match.task.startswith(TRACE)
    ending = read_ending(info, None if trace else info.get("history"))
    error = ending.fault if episode.fault and "fault" in info else None
    if replies:
        texts = [str(turn.action) for turn in episode.turns]
        return make_row(match, ending, replies=texts, gave_up="error" in info or None, error=error)
    chances = [
        max(round(math.exp(float(turn.decision.log_probs.sum())), DIGITS), 10**-DIGITS)
        for turn in episode.turns
        if turn.decision is not None
    ]
    return make_row(match, ending, chances=chances, error=error)
