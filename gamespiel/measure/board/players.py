"""The players of a board: each kind of agent, ready to play the matches of a deal."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial

from rich.console import Console

from gamespiel.agents.rollout import Episode, OnStep
from gamespiel.endpoints import EPISODE_S
from gamespiel.endpoints.chat import LOST, Chat, EndpointError, Message
from gamespiel.endpoints.completion import Usage
from gamespiel.measure.agents import Agent, load_policy
from gamespiel.measure.board.benchmark import TRACE, DealSet
from gamespiel.measure.board.episodes import (
    NoReplyError,
    choose_output,
    make_baseline,
    make_row,
    play_by_replies,
    play_match,
    read_ending,
)
from gamespiel.measure.board.file import LONGEST_ERROR, LONGEST_REPLY, TOKENS
from gamespiel.measure.journal import Row
from gamespiel.measure.options import EndpointOptions
from gamespiel.measure.play import EndpointPlayer, Keep, Match, MatchPlayer, make_policy_player
from gamespiel.tracks import MASKED, UNLISTED
from task_gym.remote.protocol import MOST_COUNTED
from task_gym.replies import visible

DIGITS = 6
"""Decimal places of the probabilities that are kept; the least has 1 at the last place, as it was not 0."""


def make_player(agent: Agent, deals: DealSet, track: str, options: EndpointOptions) -> MatchPlayer:
    """Returns an agent that is ready to play."""
    if agent.kind == "baseline":
        return BaselinePlayer(agent.spec, deals)
    if agent.kind == "endpoint":
        play_one = partial(_play_endpoint, track != UNLISTED, options.episode_s)
        return EndpointPlayer(options.open_chat(agent.spec), options.concurrency, play_one)
    policy, _ = load_policy(agent.config, agent.checkpoint, Console(quiet=True))
    return make_policy_player(
        policy,
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


def _play_endpoint(list_actions: bool, episode_s: float | None, chat: Chat, match: Match) -> Row:
    """Plays a match with a model behind an endpoint.

    Raises:
        EndpointError: the endpoint is away or refuses: the deal counts for nothing, and can be played again.
    """
    trace = match.task.startswith(TRACE)
    seconds = EPISODE_S["trace" if trace else "game"] if episode_s is None else episode_s
    deadline, spent, asking, counted = time.monotonic() + seconds, Usage(), 0.0, True

    def reply(messages: Sequence[Message]) -> str:
        nonlocal asking, counted
        began = time.monotonic()
        try:
            text, usage = chat.request_reply(messages, match.seed, deadline)
            spent.add(usage)
            counted &= usage.prompt_tokens > 0
        except TimeoutError as error:
            raise NoReplyError(f"the episode was not over after {seconds:g} s") from error
        except EndpointError as error:
            if chat.classify_failure(error) == LOST:
                raise
            raise NoReplyError(str(error)[:LONGEST_ERROR]) from error
        finally:
            asking += time.monotonic() - began
        return (text if trace else visible(text))[:LONGEST_REPLY]

    row = play_by_replies(match, reply, list_actions=list_actions)
    cost: dict[str, float] = {"seconds": round(asking, 3)}
    if counted:
        cost |= {name: min(getattr(spent, name), MOST_COUNTED - 1) for name in TOKENS}
    return row | {"cost": cost}


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
