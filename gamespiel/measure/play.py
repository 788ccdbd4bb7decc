"""Matches, and how each kind of agent plays them: in environments, or behind an endpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gamespiel.agents.envs import TextEnvs
from gamespiel.agents.rollout import Decide, Episode, Masks, OnStep, play
from gamespiel.agents.sampling.noise import Address, Purpose, episode_seeds
from gamespiel.config import Config
from gamespiel.endpoints.at_once import play_at_once
from gamespiel.endpoints.chat import LOST, Chat, EndpointError
from gamespiel.endpoints.opponent import close_opponents
from gamespiel.environments.making import make_envs, make_reply_env
from gamespiel.kinds import kind_of
from gamespiel.kinds.kind import Deal, EpisodeAddress
from gamespiel.measure.episodes import reply_constraint
from gamespiel.measure.journal import Row

if TYPE_CHECKING:  # baselines play without a learning library
    from gamespiel.agents.policy import LLMPolicy
    from gamespiel.agents.sampling.decisions import Answer


AT_ONCE = 64
"""The most environments of a player."""


class Match(NamedTuple):
    """One episode that agents play alike: a deal, from one of its seats, against one opponent.

    Attributes:
        task: The name of the task: a game, or a family of programs.
        deal: The number of the deal among those of the task, from 0.
        task_id: The task id; None for a game by name.
        seed: The episode's seed.
        seat: The agent's seat; None if there are none.
        opponent: The opponent; "" for the one that the environment has.
        place: Its number among the matches, which addresses the agents' noise.
        reset: The seed and the options of the environment's reset.
        game: The kind's own name of the task, to play it without an environment.
    """

    task: str
    deal: int
    task_id: int | None
    seed: int
    seat: int | None
    opponent: str
    place: int
    reset: tuple[int, dict[str, Any] | None]
    game: Any = None

    def __str__(self) -> str:
        return f"{self.task}, deal {self.deal}, seat {self.seat} against {self.opponent}"

    @property
    def address(self) -> EpisodeAddress:
        """The episode as a kind's player takes it."""
        return EpisodeAddress(self.task_id, self.seed, self.game, self.seat)


def list_matches(deals: Iterable[Deal]) -> list[Match]:
    """Returns every deal from each of its seats, in the deals' order."""
    pairs = [(deal, seat) for deal in deals for seat in deal.seats]
    return [
        Match(
            deal.game, deal.number, deal.address.task_id, deal.address.seed, seat, "", place,
            (deal.drawn, None if seat is None else {"seat": seat}), deal.address.task,
        )
        for place, (deal, seat) in enumerate(pairs)
    ]  # fmt: skip


Keep = Callable[[Match, Row], None]
"""Called with each match as soon as its record is there."""


Record = Callable[[Match, Episode], Row]
"""The record of a match from its episode."""


def record_episode(match: Match, episode: Episode) -> Row:
    """Returns score, result, returns and history, and what went wrong."""
    info = episode.info
    record = {name: info.get(name) for name in ("score", "result", "returns", "history")}
    record |= {"turns": len(episode.turns), "illegal": episode.illegal}
    return record | ({"error": str(info.get("fault", "a fault"))} if episode.fault else {})


class MatchPlayer(Protocol):
    """An agent that is ready to play."""

    def play(self, matches: Sequence[Match], keep: Keep, on_step: OnStep) -> None:
        """Plays matches, and keeps each."""

    def close(self) -> None:
        """Frees what it has."""


class EnvironmentPlayer:
    """Plays in local environments: a baseline or a policy.

    Args:
        make_envs: Number of environments to so many.
        begin: The environments and the matches to the agent that plays them.
        record: The record of a match from its episode.
        end: Called after the matches of a call, and if they are given up.
    """

    def __init__(
        self,
        make_envs: Callable[[int], TextEnvs],
        begin: Callable[[TextEnvs, Sequence[Match]], Decide],
        record: Record = record_episode,
        end: Callable[[], None] = lambda: None,
    ) -> None:
        self._make_envs, self._begin, self._record, self._end = make_envs, begin, record, end
        self._envs: TextEnvs | None = None

    def play(self, matches: Sequence[Match], keep: Keep, on_step: OnStep) -> None:
        """Plays the matches together."""
        for match, episode in zip(matches, self.play_episodes(matches, on_step), strict=True):
            keep(match, self._record(match, episode))

    def play_episodes(self, matches: Sequence[Match], on_step: OnStep) -> list[Episode]:
        """Plays the matches together; returns their episodes."""
        count = min(AT_ONCE, len(matches))
        if self._envs is None or self._envs.num_envs < count:
            self.close()
            self._envs = self._make_envs(count)
        envs = self._envs
        seeds, options = [match.reset[0] for match in matches], [match.reset[1] for match in matches]
        try:
            decide = self._begin(envs, matches)
            episodes = play(envs, seeds, decide, lambda turns: True, on_step, options, envs.parts)
        finally:
            self._end()
        assert episodes is not None, "nothing stops them"
        return episodes

    def close(self) -> None:
        """Closes the environments."""
        if self._envs is not None:
            self._envs.close()
            self._envs = None


def is_open(game: Any) -> bool:
    """Returns whether every seat of one of OpenSpiel's games sees the whole state."""
    import pyspiel

    return bool(game.get_type().information == pyspiel.GameType.Information.PERFECT_INFORMATION)


def draw_noise(config: Config, matches: Sequence[Match]) -> list[int]:
    """Returns the seeds of a baseline's noise, which follow from the places of its matches."""
    seeds = episode_seeds(config.run.seed, 0, matches[-1].place + 1, Purpose.BASELINE)
    return [seeds[match.place] for match in matches]


def make_baseline_player(name: str, config: Config) -> EnvironmentPlayer:
    """Returns a baseline that is ready to play."""
    kind = kind_of(config.env)

    def begin(envs: TextEnvs, matches: Sequence[Match]) -> Decide:
        return kind.make_baseline(name, envs, draw_noise(config, matches))

    make = partial(make_envs, config.env, threads=config.run.env_threads)
    return EnvironmentPlayer(make, begin)


def make_policy_player(
    policy: LLMPolicy,
    config: Config,
    seed_of: Callable[[Match], int],
    *,
    record: Record = record_episode,
    replies: bool = False,
    max_new_tokens: int | None = None,
    greedy: bool = False,
) -> EnvironmentPlayer:
    """Returns a policy that is ready to play, behind its mask or by replies.

    Args:
        policy: The policy.
        config: The configuration with which it plays.
        seed_of: The seed of a match's noise; its place among the matches of that seed is the rest.
        record: The record of a match from its episode.
        replies: Whether it answers by replies also if it was trained to choose.
        max_new_tokens: The most tokens of a reply; None for its training's, or what the kind needs.
        greedy: Whether it always takes its most probable answer.
    """
    writes, constraint = config.env.decode == "text", None
    if (replies and not writes) or (writes and max_new_tokens is not None):
        kind = kind_of(config.env).replies
        assert kind is not None, "what takes replies"
        constraint = reply_constraint(
            policy, kind.max_new_tokens if max_new_tokens is None else max_new_tokens
        )

    def make(count: int) -> TextEnvs:
        if replies or writes:
            return TextEnvs([partial(make_reply_env, config.env)] * count, config.run.env_threads)
        return make_envs(config.env, count, threads=config.run.env_threads)

    def begin(envs: TextEnvs, matches: Sequence[Match]) -> Decide:
        def decide(texts: list[str], masks: Masks, indices: list[int], turn: int) -> Sequence[Answer]:
            noise = [
                Address(seed_of(matches[i]), Purpose.EVALUATION_ACTIONS, 0, turn, matches[i].place)
                for i in indices
            ]
            decisions = policy.decide(texts, masks, None if greedy else noise, constraint=constraint)
            return [policy.answer_of(decision) for decision in decisions]

        return decide

    return EnvironmentPlayer(make, begin, record, policy.sampler.end_episodes)


class EndpointPlayer:
    """Plays with a model behind an endpoint, several matches at once.

    Args:
        chat: The model.
        concurrency: Matches at once.
        play_one: Plays a match, in a thread; returns its record.
    """

    def __init__(self, chat: Chat, concurrency: int, play_one: Callable[[Chat, Match], Row]) -> None:
        self._chat, self._concurrency, self._play_one = chat, concurrency, play_one

    def play(self, matches: Sequence[Match], keep: Keep, on_step: OnStep) -> None:
        """Plays the matches; each is kept as soon as it is over.

        Raises:
            EndpointError: the endpoint failed a match; those under way were played to their end first.
            KeyboardInterrupt: Ctrl-C; those under way were given up.
        """

        def play_one(match: Match) -> None:
            keep(match, self._play_one(self._chat, match))

        play_at_once(matches, play_one, self._stop, self._concurrency, lambda: on_step(True, 1))

    def _stop(self) -> None:
        self._chat.close()
        close_opponents()

    def close(self) -> None:
        """Closes the connections."""
        self._chat.close()


def require_played(record: Row) -> Row:
    """Returns what ``evaluate`` returned of an episode.

    Raises:
        EndpointError: it was lost, because the endpoint is away or refuses: it counts for nothing.
    """
    if record.get("error_type") == LOST:
        raise EndpointError(str(record.get("error")))
    return record
