"""`gamespiel eval`: how good is a checkpoint, or a baseline."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from gamespiel import exact, tracing
from gamespiel.agents import checkpoint
from gamespiel.agents.evaluation import (
    Measured,
    balanced_seeds,
    by_game,
    by_seat,
    measure,
    play_seeds,
    policy_agent,
)
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
from gamespiel.report.progress import progress
from gamespiel.report.results import write_json
from gamespiel.report.tables import SAMPLED_NOTE, exact_table, sampled_table, scored_table


def evaluate(options: EvalOptions, console: Console | None = None) -> dict[str, Any]:
    """Plays or solves, prints a table, writes JSON; returns the results as plain data.

    Raises:
        TaskGymError: a checkpoint, agent, model, opponent or game that cannot be evaluated as asked.
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
        console.print(notice, soft_wrap=True, markup=False)
    results: dict[str, Any] = {
        "agent": options.player,
        "greedy": options.greedy,
        "seed": config.run.seed,
        "num_episodes": None if options.exact else options.num_episodes,
        "env": to_dict(settled(config))["env"],
    }
    if options.agent is not None and options.agent in tracing.REPLIES:
        title = f"{options.agent} on {tracing.REPLY_ENVIRONMENT}"
        rows = sample_replies(config, options.agent, options.num_episodes, console)
        console.print(scored_table(title, rows))
        results |= {"games": ["code_trace"], "sampled": {name: row.to_dict() for name, row in rows.items()}}
        return _written(results, options, console)
    envs = evaluation_envs(config.env, 1 if options.exact else options.num_episodes)
    results["games"] = games_of(envs)
    policy = None if options.agent else _policy(options, config, envs, console, results)
    where = _where(config.env, results["games"])
    if options.exact:
        console.print(f"solving {where} exactly", soft_wrap=True, markup=False)
        if policy is None:
            comparison = exact.of_agent(options.player, config.env)
        else:
            comparison = exact.of_policy(policy, config.env, trained=options.checkpoint is not None)
        console.print(exact_table(comparison))
        results["exact"] = comparison.to_dict()
        return _written(results, options, console)
    title = f"{_player(options)} on {where}"
    games = options.num_episodes
    rows = sample(config, envs, policy, options.agent, games, greedy=options.greedy, console=console)
    console.print(scored_table(title, rows) if traces else sampled_table(title, rows))
    if not traces:
        console.print(SAMPLED_NOTE)
    results["sampled"] = {name: row.to_dict() for name, row in rows.items()}
    return _written(results, options, console)


def games_of(envs: TextVecEnv) -> list[str]:
    """The games that may be drawn, by name and in alphabetical order; of traces "code_trace"."""
    task: Any = envs.envs[0].unwrapped
    return sorted({variant.spec.name for variant in getattr(task, "variants", ())}) or ["code_trace"]


def _where(env: EnvConfig, games: Sequence[str]) -> str:
    """What is played against whom, as titles say it."""
    if env.env_type == "trace":
        return ENVIRONMENTS["trace"]
    listed = ", ".join(games) if len(games) <= 3 else f"{len(games)} games"
    return f"{listed} against {env.opponent}"


def _written(results: dict[str, Any], options: EvalOptions, console: Console) -> dict[str, Any]:
    path = write_json(results, options.output or _free_place(results, options))
    console.print(f"written to {path}", soft_wrap=True, markup=False)
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
    console: Console,
    when: str = "",
) -> Mapping[str, Measured]:
    """Plays `per_seat` games from each seat, shows how far it is, and measures them.

    `when` is put before the line that says so. Returns one measurement per game if there are several, one per
    seat, and "all"; of traces, of which `per_seat` are played in all, one per level and per family if there
    are several, and "all".
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
    title = f"{when}playing {len(seeds):,} {'traces' if traces else 'games'}"
    with progress(console, title, len(seeds)) as on_step:
        episodes = play_seeds(envs, decide, seeds, on_step)
    if traces:
        return _measured(tracing.by_level_and_family(episodes))
    games = by_game(episodes)
    seats = {f"seat {seat}": own for seat, own in by_seat(episodes).items()}
    return _measured((games if len(games) > 1 else {}) | seats | {"all": episodes})


def sample_replies(config: Config, agent: str, count: int, console: Console) -> Mapping[str, Measured]:
    """Does as `sample` for a baseline that answers `count` traces with text."""
    with progress(console, f"playing {count:,} traces", count) as on_step:
        episodes = tracing.reply_episodes(config.env, agent, trace_seeds(config.run.seed, count), on_step)
    return _measured(tracing.by_level_and_family(episodes))


def trace_seeds(seed: int, count: int) -> list[int]:
    """The episode seeds of an evaluation on traces; whoever is evaluated, they mean the same task ids."""
    return episode_seeds(seed, 0, count, Stream.EVALUATION_TASKS)


def _measured(groups: Mapping[str, Sequence[Episode]]) -> Mapping[str, Measured]:
    """A measurement of each group in which something was played."""
    measured = {name: measure(own) for name, own in groups.items()}
    return {name: m for name, m in measured.items() if m is not None}


def _policy(
    options: EvalOptions, config: Config, envs: TextVecEnv, console: Console, results: dict[str, Any]
) -> LLMPolicy:
    """The checkpoint's policy, or the configured model's before any training; `results` says which step."""
    if options.checkpoint is None:
        console.print(f"loading {config.model.model_name}", soft_wrap=True, markup=False)
        return make_policy(config, envs)
    found = checkpoint.find(options.checkpoint)  # before the model is loaded, which can take minutes
    results["checkpoint"] = found.name
    console.print(f"loading {config.model.model_name} with {found}", soft_wrap=True, markup=False)
    # --seed is the games'; random base weights are still those of the run's own seed.
    trained = dataclasses.replace(config.run, seed=saved_config(found).run.seed)
    policy = make_policy(dataclasses.replace(config, run=trained), envs)
    checkpoint.load_policy(policy, found)
    return policy


def _player(options: EvalOptions) -> str:
    return f"{options.player}, greedy" if options.greedy else options.player


def _free_place(results: Mapping[str, Any], options: EvalOptions) -> Path:
    """The file for these results: a new one, or that of an earlier answer to the very same question."""
    question = _question(results)
    for number in count(1):
        path = _place(results["games"], options, "" if number == 1 else f"-{number}")
        try:
            if _question(json.loads(path.read_text(encoding="utf-8"))) == question:
                return path
        except FileNotFoundError:
            return path
        except (OSError, ValueError):
            continue  # not ours to overwrite
    raise AssertionError("count() does not end")


def _question(results: Mapping[str, Any]) -> Any:
    """What was asked: everything but the answer."""
    return {key: value for key, value in results.items() if key not in ("sampled", "exact")}


def _place(games: Sequence[str], options: EvalOptions, suffix: str) -> Path:
    env = options.config.env
    kind = "exact" if options.exact else "sampled"
    task = games[0] if len(games) == 1 else f"{len(games)}-games"
    parts = [kind, "trace"] if env.env_type == "trace" else [kind, task, env.opponent]
    if options.greedy and not options.exact:
        parts.append("greedy")
    if options.checkpoint is None:
        parts.insert(0, options.player.strip("/").rpartition("/")[2])
    folder = options.checkpoint or Path("runs")
    return folder / f"eval-{re.sub(r'[^A-Za-z0-9_.-]+', '-', '-'.join(parts))}{suffix}.json"
