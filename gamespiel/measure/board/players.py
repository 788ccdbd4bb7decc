"""The players of a board: each kind of agent, ready to play the matches of a deal."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console

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
from gamespiel.measure.board.file import LONGEST_ERROR, LONGEST_REPLY, TOKENS
from gamespiel.measure.journal import Row
from gamespiel.measure.options import EndpointOptions
from gamespiel.measure.play import EndpointPlayer, Keep, Match, MatchPlayer, make_policy_player
from gamespiel.policy_opponent import find_policy
from gamespiel.tracks import MASKED, UNLISTED
from task_gym.remote.protocol import MOST_COUNTED
from task_gym.replies import visible

if TYPE_CHECKING:  # baselines play without a learning library
    from gamespiel.agents.policy import LLMPolicy

DIGITS = 6
"""Decimal places of the probabilities that are kept; the least has 1 at the last place, as it was not 0."""


class Opened:
    """The models of a process, each opened once, however many players ask it.

    Args:
        options: The options of endpoints.
    """

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
        play_one = partial(_play_endpoint, track != UNLISTED, opened.options.episode_s)
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
        self._agents, self._deals, self._options = agents, deals, opened.options
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
            play_at_once(matches, play_one, self.close, self._options.concurrency)
        else:
            for match in matches:
                play_one(match)

    def _play_one(self, match: Match) -> Row:
        replies: list[str] = []
        sides: list[Choose | Writer] = []
        for agent, side in zip(self._agents, (match, sit_opposite(match)), strict=True):
            if (chat := self._chats.get(agent.name)) is not None:
                asked = _Asked(chat, match, self._options.episode_s)
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
    """Asks a model behind an endpoint in one episode, and keeps what that costs.

    Args:
        chat: The model.
        match: The episode.
        episode_s: Seconds that all its replies may take together; None for upstream's.
    """

    def __init__(self, chat: Chat, match: Match, episode_s: float | None) -> None:
        self._chat, self._match = chat, match
        self._trace = match.task.startswith(TRACE)
        self._most = EPISODE_S["trace" if self._trace else "game"] if episode_s is None else episode_s
        self._seconds, self._spent, self._counted = 0.0, Usage(), True

    def reply(self, messages: Sequence[Message]) -> str:
        """Returns the model's next reply.

        Raises:
            NoReplyError: there is none, and the episode is lost by that.
            EndpointError: the endpoint is away or refuses.
        """
        began = time.monotonic()
        try:
            # The others' moves do not count: they could play slowly.
            deadline = began + self._most - self._seconds
            text, usage = self._chat.request_reply(messages, self._match.seed, deadline)
            self._spent.add(usage)
            self._counted &= usage.prompt_tokens > 0
        except TimeoutError as error:
            raise NoReplyError(f"its replies took {self._most:g} s") from error
        except EndpointError as error:
            if self._chat.classify_failure(error) == LOST:
                raise
            raise NoReplyError(str(error)[:LONGEST_ERROR]) from error
        finally:
            self._seconds += time.monotonic() - began
        return (text if self._trace else visible(text))[:LONGEST_REPLY]

    @property
    def cost(self) -> dict[str, float]:
        """The seconds, and the tokens if the endpoint counts them."""
        cost: dict[str, float] = {"seconds": round(self._seconds, 3)}
        if self._counted:
            cost |= {name: min(getattr(self._spent, name), MOST_COUNTED - 1) for name in TOKENS}
        return cost


def _play_endpoint(list_actions: bool, episode_s: float | None, chat: Chat, match: Match) -> Row:
    """Plays a match with a model behind an endpoint.

    Raises:
        EndpointError: the endpoint is away or refuses: the deal counts for nothing, and can be played again.
    """
    asked = _Asked(chat, match, episode_s)
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
