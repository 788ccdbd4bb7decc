"""The players of a board: how each kind of agent plays the episodes of a deal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol

from rich.console import Console

from gamespiel.agents.envs import TextEnvs
from gamespiel.agents.rollout import Decide, Episode, Masks, play
from gamespiel.agents.sampling.noise import Address, Purpose
from gamespiel.comparison.contenders import Contender
from gamespiel.endpoints.at_once import play_at_once
from gamespiel.endpoints.chat import LOST, Chat, EndpointError, Sampling
from gamespiel.endpoints.endpoint import parse_endpoint
from gamespiel.endpoints.patience import patience_of_agents
from gamespiel.environments.making import make_one_env, make_reply_env
from gamespiel.kinds import declaration_of
from gamespiel.leaderboard.agents import Agent
from gamespiel.leaderboard.benchmark import NOBODY, TRACE, DealSet, Hand, load_task
from gamespiel.leaderboard.replaying import BaselineAgent, Row, make_row, play_hand
from gamespiel.leaderboard.speaking import replay_replies
from gamespiel.tracks import MASKED, UNLISTED

if TYPE_CHECKING:  # baselines play without a learning library
    from gamespiel.agents.policy import LLMPolicy
    from gamespiel.agents.sampling.decisions import Answer
    from trace_gym.envs.choice import CodeTraceChoiceEnv

DIGITS = 6
"""Decimal places of the probabilities that are kept."""


@dataclass(frozen=True)
class EndpointOptions:
    """How models behind endpoints are asked.

    Attributes:
        concurrency: Episodes at once.
        temperature: The temperature; None for the endpoint's own.
        max_new_tokens: The most tokens of a reply; None for no limit of ours.
        request_s: Seconds until a reply begins, and between two pieces of it.
    """

    concurrency: int = 8
    temperature: float | None = None
    max_new_tokens: int | None = None
    request_s: float = 120.0


class BoardPlayer(Protocol):
    """An agent that is ready to play."""

    def play(self, hands: Sequence[Hand]) -> list[Row]:
        """Returns the records of a deal's episodes, in their order."""

    def close(self) -> None:
        """Frees what it has."""


def make_player(agent: Agent, deals: DealSet, track: str, options: EndpointOptions) -> BoardPlayer:
    """Returns an agent that is ready to play."""
    if agent.kind == "baseline":
        return BaselinePlayer(agent.given, deals)
    if agent.kind == "endpoint":
        return EndpointPlayer(agent.given, options, list_actions=track != UNLISTED)
    return PolicyPlayer(agent, deals, track)


class BaselinePlayer:
    """Plays with a baseline.

    Args:
        name: The baseline.
        deals: The deals, which its noise follows from.
    """

    def __init__(self, name: str, deals: DealSet) -> None:
        self._name, self._deals = name, deals

    def play(self, hands: Sequence[Hand]) -> list[Row]:
        """Plays the episodes one by one."""
        return [self._play_one(hand) for hand in hands]

    def _play_one(self, hand: Hand) -> Row:
        if hand.task.startswith(TRACE):
            return choose_output(hand, self._name, self._deals)
        ending = play_hand(hand, BaselineAgent(self._name, hand, self._deals))
        return make_row(hand, ending, error=ending.fault or None)

    def close(self) -> None:
        """Does nothing."""


@lru_cache(maxsize=1)
def open_choices() -> CodeTraceChoiceEnv:
    """Returns the environment of traces with a choice of outputs; there is one in a process."""
    from trace_gym.envs.choice import CodeTraceChoiceEnv

    return CodeTraceChoiceEnv()


def choose_output(hand: Hand, name: str, deals: DealSet) -> Row:
    """Plays a trace with a baseline: ``random`` chooses any of the outputs, ``first`` the first."""
    count = len(open_choices().reset(seed=hand.seed, options={"task_id": hand.task_id})[1]["legal_actions"])
    drawn = deals.draw_seed("noise", hand.task, hand.deal, hand.place) if name == "random" else 0
    return pick_output(hand, drawn % count)


def pick_output(hand: Hand, action: int) -> Row:
    """Returns the record of a trace with one of its outputs chosen."""
    env = open_choices()
    env.reset(seed=hand.seed, options={"task_id": hand.task_id})
    return record_trace(hand, env.step(action)[4], history=[int(action)])


def record_trace(hand: Hand, info: dict[str, Any], **more: Any) -> Row:
    """Returns the record of a trace from its last info."""
    row = {**hand._asdict(), "score": info["score"], "result": info["result"], "returns": info.get("returns")}
    del row["place"]
    return row | {"history": None} | {key: value for key, value in more.items() if value is not None}


class PolicyPlayer:
    """Plays with a model that is here, behind its mask or by replies.

    Args:
        agent: The agent.
        deals: The deals, which its noise follows from.
        track: The board's track.
    """

    def __init__(self, agent: Agent, deals: DealSet, track: str) -> None:
        assert agent.config is not None
        self._config, self._deals, self._replies = agent.config, deals, track != MASKED
        self._envs: TextEnvs | None = None
        self._policy = load_agent(agent)
        self._constraint = None
        writes = self._config.env.decode == "text"
        if self._replies and not writes:
            from gamespiel.measure.episodes import reply_constraint

            replies = declaration_of(self._config.env).replies
            assert replies is not None
            self._constraint = reply_constraint(self._policy, replies.max_new_tokens)

    def play(self, hands: Sequence[Hand]) -> list[Row]:
        """Plays the episodes of a deal together."""
        envs = self._open(len(hands))
        options = [
            {"task_id": hand.task_id}
            | ({} if hand.task.startswith(TRACE) else {"seat": hand.seat})
            | ({} if hand.opponent == NOBODY else {"opponent": hand.opponent})
            for hand in hands
        ]
        decide: Decide = partial(self._decide, hands)
        try:
            episodes = play(envs, [hand.seed for hand in hands], decide, lambda turns: True, options=options)
        finally:
            self._policy.sampler.end_episodes()
        assert episodes is not None
        return [self._record(hand, episode) for hand, episode in zip(hands, episodes, strict=True)]

    def _open(self, count: int) -> TextEnvs:
        if self._envs is None or self._envs.num_envs < count:
            self.close()
            make = partial(make_reply_env if self._replies else make_one_env, self._config.env)
            self._envs = TextEnvs([make] * count, 1)
        return self._envs

    def _decide(
        self, hands: Sequence[Hand], texts: list[str], masks: Masks, indices: list[int], turn: int
    ) -> Sequence[Answer]:
        """Decides with noise that the deals decide, in whatever order they are played."""
        policy = self._policy
        noise = [
            Address(
                self._deals.draw_seed("noise", hands[index].task, hands[index].deal),
                Purpose.EVALUATION_ACTIONS,
                0,
                turn,
                hands[index].place,
            )
            for index in indices
        ]
        decisions = policy.decide(texts, masks, noise, constraint=self._constraint)
        return [policy.answer_of(decision) for decision in decisions]

    def _record(self, hand: Hand, episode: Episode) -> Row:
        info, chances = episode.info, []
        for turn in episode.turns:
            if turn.decision is not None:
                chances.append(round(math.exp(float(turn.decision.log_probs.sum())), DIGITS))
        row = record_trace(hand, info)
        history = info.get("history")
        if self._replies:
            row["replies"] = [str(turn.action) for turn in episode.turns]
            row["gave_up"] = "error" in info or None
            history = None if hand.task.startswith(TRACE) else history
        else:
            row["chances"] = chances
        row["history"] = None if history is None else [int(action) for action in history]
        row["error"] = str(info["fault"]) if episode.fault and "fault" in info else None
        return {key: value for key, value in row.items() if value is not None or key in KEPT}

    def close(self) -> None:
        """Closes the environments."""
        if self._envs is not None:
            self._envs.close()
            self._envs = None


KEPT = ("score", "returns", "history")
"""The entries of a record that are there even if they are null."""


def load_agent(agent: Agent) -> LLMPolicy:
    """Returns the policy of a checkpoint, or of an untrained model."""
    from gamespiel.agents.models import NEWEST
    from gamespiel.assembly import connect_sampler, make_policy
    from gamespiel.comparison.run import load_policy

    assert agent.config is not None
    quiet = Console(quiet=True)
    if agent.checkpoint is not None:
        return load_policy(Contender(agent.name, agent.config, agent.checkpoint), quiet)
    env = make_one_env(agent.config.env)
    policy = connect_sampler(agent.config, make_policy(agent.config, env))
    env.close()
    policy.sampler.publish(NEWEST, policy.adapters.learning)
    return policy


class EndpointPlayer:
    """Plays with a model behind an endpoint, several episodes at once, by the rules of ``evaluate``.

    Args:
        name: The agent, as openai:MODEL@URL.
        options: How it is asked.
        list_actions: Whether it is shown the list of legal actions.
    """

    def __init__(self, name: str, options: EndpointOptions, *, list_actions: bool) -> None:
        sampling = Sampling(options.temperature, options.max_new_tokens)
        self._chat = Chat(parse_endpoint(name), sampling, patience_of_agents(options.request_s))
        self._concurrency, self._lists = options.concurrency, list_actions

    def play(self, hands: Sequence[Hand]) -> list[Row]:
        """Plays the episodes.

        Raises:
            EndpointError: the endpoint is away or refuses: nothing of the deal counts, and it can be played
                again.
        """
        rows: dict[int, Row] = {}

        def play_one(hand: Hand) -> None:
            rows[hand.place] = self._play_one(hand)

        play_at_once(hands, play_one, self._chat.close, self._concurrency)
        return [rows[hand.place] for hand in hands]

    def _play_one(self, hand: Hand) -> Row:
        from gamespiel.endpoints.games import play_game
        from gamespiel.endpoints.traces import ask_trace
        from trace_gym.envs.text import CodeTraceEnv

        if hand.task.startswith(TRACE):
            found = ask_trace(self._chat, CodeTraceEnv(), hand.task_id, hand.seed)
        else:
            opponent = "random" if hand.opponent == NOBODY else hand.opponent
            found = play_game(
                self._chat, load_task(hand.task_id), hand.seed, opponent, seat=hand.seat,
                list_actions=self._lists,
            )  # fmt: skip
        if found.get("error_type") == LOST:
            raise EndpointError(str(found.get("error")))
        said = found["extra"]["conversation"]
        replies = [str(line["content"] or "") for line in said if line["role"] == "assistant"]
        # The entry follows from the replies alone, so that anybody can check it.
        return replay_replies(hand, replies, list_actions=self._lists, error=found.get("error"))

    def close(self) -> None:
        """Closes the connections."""
        self._chat.close()
