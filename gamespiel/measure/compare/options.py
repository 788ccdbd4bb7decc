"""The options of ``gamespiel eval --compare``."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gamespiel.agents.fields import DECODERS
from gamespiel.config import Config, InvalidValueError
from gamespiel.kinds import KINDS, kind_of
from gamespiel.measure import agents
from gamespiel.measure.agents import Agent
from gamespiel.measure.options import EndpointOptions, check_least, check_output
from gamespiel.tracks import require_one_track
from task_gym.errors import check_choice, quote


@dataclass(frozen=True)
class CompareOptions(EndpointOptions):
    """The options of one comparison.

    Attributes:
        config: The tasks, the opponent and the seed, which all agents share.
        agents: The agents.
        num_episodes: Deals of each game, each played from every seat; with ``until_clear``, the most.
        until_clear: Whether play stops as soon as every pooled difference is clear.
        detect: The difference in score for which the deals that would be needed are said.
        greedy: Whether checkpoints always take their most probable action.
        decode: "choice", or "text": checkpoints answer by replies.
        output: The file of results; None for one in ``runs``.
        resume: Whether the episodes of a comparison that was stopped are kept, and the rest is played.

    Raises:
        InvalidValueError: options that exclude one another, or a value out of range.
    """

    config: Config
    agents: tuple[Agent, ...]
    num_episodes: int = 100
    until_clear: bool = False
    detect: float = 0.05
    greedy: bool = False
    decode: str = DECODERS[0]
    output: Path | None = None
    resume: bool = False

    @property
    def reply_tokens(self) -> int:
        """The most tokens of a reply."""
        replies = kind_of(self.config.env).replies
        assert replies is not None, "games take replies"
        return replies.max_new_tokens if self.max_new_tokens is None else self.max_new_tokens

    def track(self, agent: Agent) -> str | None:
        """Returns an agent's track; None for a baseline, whose actions are always legal."""
        if agent.kind == "baseline":
            return None
        env = agent.config.env
        writes = agent.kind == "endpoint" or "text" in (self.decode, env.decode)
        return kind_of(env).track(env, writes=writes)

    def __post_init__(self) -> None:
        check_choice("--decode", self.decode, DECODERS, InvalidValueError)
        super().__post_init__()
        names = [agent.name for agent in self.agents]
        if len(names) < 2:
            raise InvalidValueError(f"--compare takes two agents or more, not {len(names)}: --compare A B")
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise InvalidValueError(f"--compare names {quote(twice[0])} twice")
        tracks = {agent.name: self.track(agent) for agent in self.agents}
        require_one_track(tracks, "; --track has all of them play on one: masked, unmasked or unlisted")
        check_least(self, num_episodes=1)
        if not 0 < self.detect <= 1:  # NaN is neither
            raise InvalidValueError(f"--detect must be above 0 and at most 1, not {self.detect}")
        check_output(self.output)


def find_checkpoint(option: str, name: str, env_type: str) -> Path | None:
    """Returns the checkpoint that a name means; None if it names a baseline or an endpoint.

    Raises:
        InvalidValueError: it names neither.
    """
    baselines = KINDS[env_type].baselines
    if re.fullmatch(baselines.pattern, name):
        return None
    return agents.find_checkpoint(option, name, baselines.names, ("random", "first", "mcts", "ismcts"))


def enter(name: str, common: Config, run_config: Config | None, checkpoint: Path | None) -> Agent:
    """Returns an agent, which plays what all play.

    Args:
        name: Its name as it was given.
        common: The configuration of the tasks, the opponent and the seed.
        run_config: The configuration of a checkpoint's run, which says how it is asked; None for others.
        checkpoint: The checkpoint; None for others.
    """
    if run_config is None:  # baselines choose, also if a policy would write
        env = dataclasses.replace(common.env, answer="id", decode="choice", think=False)
        return Agent(name, name, dataclasses.replace(common, env=env))
    asking: Any = {key: getattr(run_config.env, key) for key in kind_of(run_config.env).asking}
    if run_config.env.env_type != common.env.env_type:
        raise InvalidValueError(
            f"--compare {quote(name)}: it was trained on env.env_type {run_config.env.env_type}, and "
            f"{common.env.env_type} is played"
        )
    env = dataclasses.replace(common.env, **asking)
    run = dataclasses.replace(run_config.run, seed=common.run.seed)
    return Agent(name, name, dataclasses.replace(run_config, env=env, run=run), checkpoint)


def describe(options: CompareOptions, agent: Agent) -> dict[str, Any]:
    """Returns what identifies an agent: its name, its track, and of a checkpoint its weights."""
    return {"name": agent.name, "track": options.track(agent), **agent.identify()}
