"""`gamespiel eval`: how good is a checkpoint, or a baseline."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from gamespiel import exact, tracing
from gamespiel.agents import checkpoint
from gamespiel.agents.evaluation import Measured, balanced_seeds, by_seat, measure, play_seeds, policy_agent
from gamespiel.agents.noise import Stream, episode_seeds
from gamespiel.agents.policy import LLMPolicy
from gamespiel.agents.rollout import Decide, Episode
from gamespiel.agents.vec_env import TextVecEnv
from gamespiel.assembly import ENVIRONMENTS, make_envs, make_policy, settled
from gamespiel.baselines import baseline_agent
from gamespiel.config import (
    Config,
    InvalidValueError,
    env_notices,
    require_built,
    saved_config,
    to_dict,
)
from gamespiel.config.sections import EnvConfig
from gamespiel.options import EvalOptions
from gamespiel.report import exact_table, sampled_table, scored_table, write_json


def evaluate(options: EvalOptions, console: Console | None = None) -> dict[str, Any]:
    """Play or solve, print a table, write JSON; the results are returned as plain data.

    Raises:
        TaskGymError: a checkpoint, agent, opponent or game that cannot be evaluated as asked.
    """
    console = console or Console()
    config = require_built(options.config)
    traces = config.env.env_type == "trace"
    if config.env.opponent == "open" and not traces:
        raise InvalidValueError(
            "evaluation needs an opponent to play against; 'open' leaves every seat to the agent"
        )
    if options.greedy and options.agent:
        raise InvalidValueError(f"--greedy is for a checkpoint: {options.agent!r} has no probabilities")
    if options.exact and traces:
        raise InvalidValueError("--exact is for games small enough to enumerate, not for traces")
    if config.run.num_threads is not None:
        torch.set_num_threads(config.run.num_threads)
    for notice in env_notices(config.env):
        console.print(notice, soft_wrap=True)
    results: dict[str, Any] = {
        "agent": options.agent or str(options.checkpoint),
        "greedy": options.greedy,
        "seed": config.run.seed,
        "env": to_dict(settled(config))["env"],
    }
    if options.agent is not None and options.agent in tracing.REPLIES:
        rows = sample_replies(config, options.agent, options.num_episodes)
        console.print(scored_table(f"{options.agent} on {tracing.REPLY_ENVIRONMENT}", rows))
        results["sampled"] = {name: row.to_dict() for name, row in rows.items()}
        return _written(results, options, console)
    envs = evaluation_envs(config.env, 1 if options.exact else options.num_episodes)
    policy = _trained(options, config, envs) if options.checkpoint else None
    if options.exact:
        name = options.agent or ""
        comparison = exact.of_policy(policy, config.env) if policy else exact.of_agent(name, config.env)
        console.print(exact_table(comparison))
        results["exact"] = comparison.to_dict()
    else:
        rows = sample(config, envs, policy, options.agent, options.num_episodes, greedy=options.greedy)
        if traces:
            console.print(scored_table(f"{_player(options)} on {ENVIRONMENTS['trace']}", rows))
        else:
            console.print(sampled_table(f"{_player(options)} against {config.env.opponent}", rows))
        results["sampled"] = {name: row.to_dict() for name, row in rows.items()}
    return _written(results, options, console)


def _written(results: dict[str, Any], options: EvalOptions, console: Console) -> dict[str, Any]:
    path = write_json(results, options.output or _default_output(options))
    console.print(f"written to {path}", soft_wrap=True)
    return results


def evaluation_envs(env: EnvConfig, per_seat: int) -> TextVecEnv:
    """Environments for `per_seat` episodes from each seat: nearly all games have two, traces have one."""
    return make_envs(env, per_seat if env.env_type == "trace" else 2 * per_seat)


def sample(
    config: Config,
    envs: TextVecEnv,
    policy: LLMPolicy | None,
    agent: str | None,
    per_seat: int,
    *,
    greedy: bool = False,
) -> Mapping[str, Measured]:
    """`per_seat` games from each seat: one measurement a seat, and "all".

    Of traces `per_seat` in all: one measurement a level and a family, where there are several, and "all".
    """
    seed, traces = config.run.seed, config.env.env_type == "trace"
    seeds = (
        trace_seeds(seed, per_seat) if traces else balanced_seeds(envs, per_seat, seed, {"opponent": "first"})
    )
    decide: Decide
    if policy is not None:
        decide = policy_agent(policy, seed, len(seeds), greedy=greedy)
    elif traces:
        decide = tracing.choice_agent(agent or "random", seed, len(seeds))
    else:
        decide = baseline_agent(agent or "random", envs, seed, len(seeds))
    episodes = play_seeds(envs, decide, seeds)
    if traces:
        return _measured(tracing.by_level_and_family(episodes))
    seats = {f"seat {seat}": own for seat, own in by_seat(episodes).items()}
    return _measured(seats | {"all": episodes})


def sample_replies(config: Config, agent: str, count: int) -> Mapping[str, Measured]:
    """As `sample`, of a baseline that answers `count` traces with text."""
    episodes = tracing.reply_episodes(config.env, agent, trace_seeds(config.run.seed, count))
    return _measured(tracing.by_level_and_family(episodes))


def trace_seeds(seed: int, count: int) -> list[int]:
    """The episode seeds of an evaluation on traces; whoever is evaluated, they mean the same task ids."""
    return episode_seeds(seed, 0, count, Stream.EVALUATION_TASKS)


def _measured(groups: Mapping[str, Sequence[Episode]]) -> Mapping[str, Measured]:
    """A measurement of each group in which something was played."""
    measured = {name: measure(own) for name, own in groups.items()}
    return {name: m for name, m in measured.items() if m is not None}


def _trained(options: EvalOptions, config: Config, envs: TextVecEnv) -> LLMPolicy:
    assert options.checkpoint is not None
    found = checkpoint.find(options.checkpoint)  # before the model is loaded, which can take minutes
    # --seed is the games'; random base weights are still those of the run's own seed.
    trained = dataclasses.replace(config.run, seed=saved_config(found).run.seed)
    policy = make_policy(dataclasses.replace(config, run=trained), envs)
    checkpoint.load_policy(policy, found)
    return policy


def _player(options: EvalOptions) -> str:
    who = options.agent or str(options.checkpoint)
    return f"{who}, greedy" if options.greedy else who


def _default_output(options: EvalOptions) -> Path:
    kind = "exact" if options.exact else "sampled"
    env = options.config.env
    opponent = "trace" if env.env_type == "trace" else env.opponent.replace(":", "-").replace("/", "-")
    if options.checkpoint is not None:
        greedy = "-greedy" if options.greedy and not options.exact else ""
        return options.checkpoint / f"eval-{kind}-{opponent}{greedy}.json"
    assert options.agent is not None
    return Path("runs") / f"eval-{options.agent.replace(':', '-')}-{kind}-{opponent}.json"
