"""The evaluation loop, the same for a trained policy and for a baseline: its seeds, and its measures."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

import gymnasium as gym

from gamespiel.agents.envs import TextEnvs
from gamespiel.agents.models import NEWEST
from gamespiel.agents.rollout import Decide, Episode, Masks, OnStep, play
from gamespiel.agents.sampling.decisions import Answer
from gamespiel.agents.sampling.noise import Address, Purpose, episode_seeds
from task_gym.stats import Interval, mean_interval, wilson

if TYPE_CHECKING:
    from gamespiel.agents.policy import LLMPolicy
    from gamespiel.agents.tokens.constraints import Constraint


@dataclass(frozen=True)
class Measured:
    """Measures of a set of episodes.

    Attributes:
        episodes: Number of episodes that count.
        faults: Number of backend failures, which are left out.
        score: Mean score with its 95% interval: that of bounded values if all are scores in [0, 1], and the
            normal one of rewards.
        success: Share of scores above 0.5 with its 95% Wilson interval.
        returns: Mean return of the seat with its 95% normal interval, too narrow if wins are rare, and
            unbounded if all are equal. None if the environment gives no returns, or for several games, whose
            units differ (chips, points).
        illegal_rate: Illegal actions per action.
        length: Turns per episode.
        legal_mass: Mean unmasked probability of the legal answers per turn; None without a language model.
        by_scoring: If the environment has several scores, the mean of each with its 95% Wilson interval.
    """

    episodes: int
    faults: int
    score: Interval
    success: Interval
    returns: Interval | None
    illegal_rate: float
    length: float
    legal_mass: float | None = None
    by_scoring: Mapping[str, Interval] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        data = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}
        if self.by_scoring:
            data["by_scoring"] = {name: list(interval) for name, interval in self.by_scoring.items()}
        else:
            del data["by_scoring"]
        return data


def measure(episodes: Sequence[Episode]) -> Measured | None:
    """Returns the measures of episodes, or None if every one was a fault."""
    played = [episode for episode in episodes if not episode.fault]
    if not played:
        return None
    turns = sum(len(episode.turns) for episode in played)
    measures = [turn.measures for episode in played for turn in episode.turns]
    masses = [row["legal_mass"] for row in measures if "legal_mass" in row]
    # An environment without scores is measured by its reward.
    scores = [float(episode.info.get("score", episode.total_reward)) for episode in played]
    bounded = all("score" in e.info for e in played) and 0 <= min(scores) <= max(scores) <= 1
    returns = [e.info["returns"][e.info["seat"]] for e in played if "returns" in e.info]
    games = {e.info.get("game") for e in played}
    named = [e.info["by_scoring"] for e in played if "by_scoring" in e.info]
    names = list(named[0]) if len(named) == len(played) else []
    return Measured(
        episodes=len(played),
        faults=len(episodes) - len(played),
        score=mean_interval(scores, (0.0, 1.0) if bounded else None),
        success=wilson(
            sum(bool(e.info.get("success", s > 0.5)) for e, s in zip(played, scores, strict=True)),
            len(played),
        ),
        returns=mean_interval(returns) if len(returns) == len(played) and len(games) == 1 else None,
        illegal_rate=sum(episode.illegal for episode in played) / max(1, turns),
        length=turns / len(played),
        legal_mass=sum(masses) / turns if turns and len(masses) == turns else None,
        by_scoring={name: wilson(sum(ways[name] for ways in named), len(named)) for name in names},
    )


@dataclass(frozen=True, kw_only=True)
class MeasuredReplies(Measured):
    """Measures of episodes in which a model wrote replies as text, and nothing masked it.

    Shares have 95% Wilson intervals, which take replies to be independent; those of one episode need not be.
    They are None if no reply was given.

    Attributes:
        replies: Number of replies.
        illegal_replies: Number of replies that named no legal action.
        illegal_share: Illegal replies per reply.
        given_up: Number of episodes that illegal replies ended.
        given_up_share: Such episodes per episode.
        cut_replies: Number of replies cut at the token limit.
        cut_share: Such replies per reply.
        tokens_per_reply: Mean number of tokens of a reply.
    """

    replies: int
    illegal_replies: int
    illegal_share: Interval | None
    given_up: int
    given_up_share: Interval
    cut_replies: int
    cut_share: Interval | None
    tokens_per_reply: float | None


def measure_replies(episodes: Sequence[Episode]) -> MeasuredReplies | None:
    """Returns the measures of episodes of replies, or None if every one was a fault."""
    measured = measure(episodes)
    if measured is None:
        return None
    played = [episode for episode in episodes if not episode.fault]
    replies = [turn.measures for episode in played for turn in episode.turns]
    illegal = sum(episode.illegal for episode in played)
    # A legal action clears the error: an episode that ends with one was ended by an illegal action.
    given_up = sum("error" in episode.info for episode in played)
    cut, n = int(sum(reply["cut_share"] for reply in replies)), len(replies)
    return MeasuredReplies(
        **{f.name: getattr(measured, f.name) for f in fields(measured)},
        replies=n,
        illegal_replies=illegal,
        illegal_share=wilson(illegal, n) if n else None,
        given_up=given_up,
        given_up_share=wilson(given_up, len(played)),
        cut_replies=cut,
        cut_share=wilson(cut, n) if n else None,
        tokens_per_reply=sum(reply["reply_tokens"] for reply in replies) / n if n else None,
    )


def play_seeds(
    env: TextEnvs,
    decide: Decide,
    seeds: Sequence[int],
    on_step: OnStep = lambda over, turns: None,
    parts: int = 1,
) -> list[Episode]:
    """Plays one episode per seed to its end; ``play`` takes ``on_step`` and ``parts``."""
    episodes = play(env, seeds, decide, lambda turns: True, on_step, parts=parts)
    assert episodes is not None
    return episodes


def group_by(key: str, episodes: Iterable[Episode]) -> dict[Any, list[Episode]]:
    """Returns episodes by a key of their infos ("game", "opponent", "seat"), those without it last."""
    groups: dict[Any, list[Episode]] = {}
    for episode in episodes:
        groups.setdefault(episode.info.get(key), []).append(episode)
    return dict(sorted(groups.items(), key=lambda item: (item[0] is None, item[0])))


def policy_agent(
    policy: LLMPolicy,
    seed: int,
    *,
    greedy: bool = False,
    adapters: str = NEWEST,
    constraint: Constraint | None = None,
) -> Decide:
    """Returns the policy as an agent: as it was trained, or always its most probable answer.

    Its noise does not depend on the constraint. If all mass is on one-token legal answers, whose order is
    that of their tokens, free text answers as the masked policy does.

    Args:
        policy: The policy.
        seed: Seed of the evaluation.
        greedy: Whether the most probable answer is taken, always.
        adapters: Name of the adapters that play.
        constraint: Limits the answers in the place of the policy's own, such as ``policy.free_text``.
    """

    def decide(texts: list[str], masks: Masks, indices: list[int], turn: int) -> list[Answer]:
        noise = [Address(seed, Purpose.EVALUATION_ACTIONS, 0, turn, index) for index in indices]
        drawn = None if greedy else noise
        decisions = policy.decide(texts, masks, drawn, adapters=adapters, constraint=constraint)
        return [policy.answer_of(decision) for decision in decisions]

    return decide


PROBES = 64
"""Seeds that are probed for the environment's seats: enough to find 4 equally likely ones."""

Taken = Callable[[Sequence[int]], Container[int]]
"""Returns those of some seeds that an evaluation must not play, such as those of training."""


def draw_balanced_seeds(
    env: gym.Env[Any, Any],
    per_seat: int,
    seed: int,
    options: dict[str, Any] | None = None,
    taken: Taken | None = None,
) -> list[int]:
    """Returns episode seeds that give every seat ``per_seat`` episodes, in the order drawn.

    Args:
        env: The environment, which is reset.
        per_seat: Episodes per seat.
        seed: Seed of the draws.
        options: Options of the resets that find a seed's seat, such as a cheap opponent.
        taken: See ``Taken``.
    """
    stream = episode_seeds(seed, 0, PROBES, Purpose.EVALUATION_TASKS)
    seats = {_find_seat(env, probe, options) for probe in stream}
    quota, chosen, block = dict.fromkeys(seats, per_seat), [], 0
    while any(quota.values()):
        out = taken(stream) if taken else ()
        for candidate in stream:
            if candidate in out:
                continue
            seat = _find_seat(env, candidate, options)
            if quota.get(seat, 0):
                quota[seat] -= 1
                chosen.append(candidate)
        block += 1
        stream = episode_seeds(seed, block, PROBES, Purpose.EVALUATION_TASKS)
    return chosen


def _find_seat(env: gym.Env[Any, Any], seed: int, options: dict[str, Any] | None) -> Any:
    return env.reset(seed=seed, options=options)[1].get("seat")
