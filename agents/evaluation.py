"""The evaluation loop, the same for a trained policy and for a baseline, and its measures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from gamespiel.agents.memory import without_gradients
from gamespiel.agents.noise import Purpose, action_uniforms, episode_seeds
from gamespiel.agents.policy import LLMPolicy, PolicySample
from gamespiel.agents.rollout import Decide, Episode, Masks, OnStep, play
from gamespiel.agents.stats import Interval, mean_interval, wilson
from gamespiel.agents.vec_env import TextVecEnv

PROBES = 64
"""Seeds that are probed for the environment's seats: enough to find 4 equally likely ones."""


@dataclass(frozen=True)
class Measured:
    """Measures of a set of episodes.

    Attributes:
        episodes: Number of episodes that count.
        faults: Number of backend failures, which are left out.
        score: Mean score in [0, 1] with its 95% normal interval.
        success: Share of scores above 0.5 with its 95% Wilson interval.
        returns: Mean return of the seat with its 95% normal interval. None if the environment gives no
            returns, or for several games, whose units differ (chips, points).
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
    mass = sum(turn.legal_mass for episode in played for turn in episode.turns) / max(1, turns)
    # An environment without scores is measured by its reward.
    scores = [float(episode.info.get("score", episode.total_reward)) for episode in played]
    returns = [e.info["returns"][e.info["seat"]] for e in played if "returns" in e.info]
    games = {e.info.get("game") for e in played}
    named = [e.info["by_scoring"] for e in played if "by_scoring" in e.info]
    names = list(named[0]) if len(named) == len(played) else []
    return Measured(
        episodes=len(played),
        faults=len(episodes) - len(played),
        score=mean_interval(scores),
        success=wilson(
            sum(bool(e.info.get("success", s > 0.5)) for e, s in zip(played, scores, strict=True)),
            len(played),
        ),
        returns=mean_interval(returns) if len(returns) == len(played) and len(games) == 1 else None,
        illegal_rate=sum(episode.illegal for episode in played) / max(1, turns),
        length=turns / len(played),
        legal_mass=mass if turns and math.isfinite(mass) else None,
        by_scoring={name: wilson(sum(ways[name] for ways in named), len(named)) for name in names},
    )


def balanced_seeds(
    env: TextVecEnv, per_seat: int, seed: int, options: dict[str, Any] | None = None
) -> list[int]:
    """Returns episode seeds that give every seat ``per_seat`` episodes, in the order drawn.

    Args:
        env: The environments; the first one is reset.
        per_seat: Episodes per seat.
        seed: Seed of the draws.
        options: Options of the resets that find a seed's seat, such as a cheap opponent.
    """
    stream = episode_seeds(seed, 0, PROBES, Purpose.EVALUATION_TASKS)
    seats = {_seat(env, probe, options) for probe in stream}
    quota, chosen, block = dict.fromkeys(seats, per_seat), [], 0
    while any(quota.values()):
        for candidate in stream:
            seat = _seat(env, candidate, options)
            if quota.get(seat, 0):
                quota[seat] -= 1
                chosen.append(candidate)
        block += 1
        stream = episode_seeds(seed, block, PROBES, Purpose.EVALUATION_TASKS)
    return chosen


def _seat(env: TextVecEnv, seed: int, options: dict[str, Any] | None) -> Any:
    return env.reset_one(0, seed, options)[1].get("seat")


def play_seeds(
    env: TextVecEnv,
    decide: Decide,
    seeds: Sequence[int],
    on_step: OnStep = lambda over, turns: None,
) -> list[Episode]:
    """Plays one episode per seed to its end; ``play`` calls ``on_step``."""
    episodes = play(env, seeds, decide, lambda turns: True, on_step)
    assert episodes is not None
    return episodes


def by_game(episodes: Iterable[Episode]) -> dict[Any, list[Episode]]:
    """Returns episodes by game, in alphabetical order."""
    games: dict[Any, list[Episode]] = {}
    for episode in episodes:
        games.setdefault(episode.info.get("game"), []).append(episode)
    return dict(sorted(games.items(), key=lambda item: str(item[0])))


def by_seat(episodes: Iterable[Episode]) -> dict[Any, list[Episode]]:
    """Returns episodes by seat, lowest first."""
    seats: dict[Any, list[Episode]] = {}
    for episode in episodes:
        seats.setdefault(episode.info.get("seat"), []).append(episode)
    return dict(sorted(seats.items(), key=lambda item: (item[0] is None, item[0])))


def policy_agent(policy: LLMPolicy, seed: int, episodes: int, *, greedy: bool = False) -> Decide:
    """Returns the policy as an agent: at temperature 1, or always its most probable action."""

    def decide(texts: list[str], masks: Masks, indices: list[int], turn: int) -> PolicySample:
        if greedy:
            return without_gradients(policy, texts, lambda: policy.best(texts, masks))

        def uniforms(depth: int) -> Any:
            return action_uniforms(seed, 0, turn, depth, episodes, indices, Purpose.EVALUATION_ACTIONS)

        return without_gradients(policy, texts, lambda: policy.sample(texts, masks, uniforms))

    return decide
