"""The episodes of an evaluation: played by a policy, by its replies or by a baseline, and measured."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console

from gamespiel.agents.models import NEWEST
from gamespiel.agents.rollout import Decide, Episode, Masks
from gamespiel.agents.runs.evaluation import (
    Measured,
    Taken,
    measure,
    measure_replies,
    play_seeds,
    policy_agent,
)
from gamespiel.config import Config
from gamespiel.environments.making import ENVIRONMENTS_AT_ONCE, make_envs, make_played_envs
from gamespiel.kinds import kind_of
from gamespiel.kinds.kind import ShowProgress
from gamespiel.report.progress import report_progress

if TYPE_CHECKING:  # baselines are evaluated without a learning library
    from gamespiel.agents.policy import LLMPolicy
    from gamespiel.agents.sampling.decisions import Answer
    from gamespiel.agents.tokens.constraints import FreeText

M = TypeVar("M", bound=Measured)

BLOCK = 16
"""Episodes that an evaluation with a limit of time plays together."""


@dataclasses.dataclass(frozen=True)
class Limits:
    """Which episodes an evaluation may play, and for how long.

    Attributes:
        taken: See ``Taken``.
        seconds: Seconds after which no further episodes are begun; None for no limit.
    """

    taken: Taken | None = None
    seconds: float | None = None

    @property
    def at_once(self) -> int:
        """The most environments."""
        return ENVIRONMENTS_AT_ONCE if self.seconds is None else BLOCK


NO_LIMITS = Limits()


def reply_constraint(policy: LLMPolicy, max_new_tokens: int) -> FreeText:
    """Returns the constraint of the model's replies over its whole vocabulary.

    A policy that was trained to write has the temperature of its training; another one has 1.
    """
    temperature = 1.0 if policy.answers.masked else policy.temperature
    return policy.free_text(max_new_tokens, temperature)


def play_policy(
    config: Config,
    policy: LLMPolicy,
    count: int,
    console: Console,
    *,
    free: FreeText | None = None,
    greedy: bool = False,
    when: str = "",
    adapters: str = NEWEST,
    limits: Limits = NO_LIMITS,
    progress: ShowProgress | None = None,
) -> list[Episode]:
    """Plays ``count`` episodes per seat with a policy, and returns them.

    By its replies and behind its mask they are the same games: seeds, seats and opponent are the same.

    Args:
        config: The environment and the seed.
        policy: The policy, as it was trained.
        count: Episodes per seat; code tracing has one seat.
        console: Shows progress.
        free: The constraint of its replies as text; None for the policy's own: behind its mask, unless it was
            trained to write.
        greedy: Whether the policy always takes its most probable action or token.
        when: Prefix of the progress line.
        adapters: Name of the adapters that play.
        limits: Which episodes may be played, and for how long. A block is played to its end: episodes that
            take long are not left out more often than others.
        progress: Shows progress in the place of the console.
    """
    kind, writes = kind_of(config.env), free is not None or not policy.answers.masked
    envs = make_played_envs(config, min(kind.seats * count, limits.at_once), replies=writes)
    seeds = kind.seeds(envs, count, config.run.seed, limits.taken)
    decide = policy_agent(policy, config.run.seed, greedy=greedy, adapters=adapters, constraint=free)
    if writes:
        when = f"{when}replies, {'greedy' if greedy else 'sampled'}: "
    show_progress = progress or _make_progress(config, console, when)
    end = math.inf if limits.seconds is None else time.monotonic() + limits.seconds
    block = max(1, len(seeds)) if limits.seconds is None else BLOCK
    episodes: list[Episode] = []
    try:
        with show_progress(len(seeds)) as on_step:
            for start in range(0, len(seeds), block):
                if start and time.monotonic() > end:
                    break
                decide_block = partial(_decide_later, decide, start) if start else decide
                episodes += play_seeds(envs, decide_block, seeds[start : start + block], on_step, envs.parts)
    finally:
        policy.sampler.end_episodes()  # which forgets what it keeps of conversations
        envs.close()
    return episodes


def measure_played(config: Config, policy: LLMPolicy, episodes: Sequence[Episode]) -> Mapping[str, Measured]:
    """Returns the measures by group of episodes that ``play_policy`` played by the policy's own answers."""
    return measure_groups(config, episodes, measure if policy.answers.masked else measure_replies)


def measure_agent(config: Config, name: str, count: int, console: Console) -> Mapping[str, Measured]:
    """Does as ``play_agent``; returns the episodes' measures by group."""
    return measure_groups(config, play_agent(config, name, count, console), measure)


def play_agent(config: Config, name: str, count: int, console: Console) -> list[Episode]:
    """Plays ``count`` episodes per seat with a baseline, by name, and returns them."""
    # Baselines choose, also if a policy would write; those that reply make their own environment.
    env = dataclasses.replace(config.env, decode="choice", think=False)
    copies = partial(make_envs, env, threads=config.run.env_threads)
    show_progress = _make_progress(config, console)
    return kind_of(env).play_agent(name, env, count, config.run.seed, copies, show_progress)


def _decide_later(
    decide: Decide, start: int, texts: list[str], masks: Masks, indices: list[int], turn: int
) -> Sequence[Answer]:
    """Decides for a block of episodes, whose noise is addressed by their places among all."""
    return decide(texts, masks, [start + index for index in indices], turn)


def _make_progress(config: Config, console: Console, when: str = "") -> ShowProgress:
    unit = kind_of(config.env).unit
    return lambda episodes: report_progress(console, f"{when}playing {episodes:,} {unit}", episodes)


def measure_groups(
    config: Config, episodes: Sequence[Episode], measure: Callable[[Sequence[Episode]], M | None]
) -> Mapping[str, M]:
    """Returns the measures of each group with an episode that is no fault."""
    groups = kind_of(config.env).group_episodes(episodes)
    measured = {name: measure(group) for name, group in groups.items()}
    return {name: m for name, m in measured.items() if m is not None}
