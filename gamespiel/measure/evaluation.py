"""``gamespiel eval``: the evaluation of a checkpoint, a baseline or an untrained model."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console

from gamespiel.agents.installed import check_trainer
from gamespiel.agents.rollout import Episode
from gamespiel.agents.runs.evaluation import Measured, MeasuredReplies, measure, measure_replies
from gamespiel.config import Config, InvalidValueError, evaluation_notices, import_own_modules, to_dict
from gamespiel.environments.making import evaluation_config, make_one_env, pin_tasks
from gamespiel.kinds import kind_of
from gamespiel.kinds.keys import format_opponent
from gamespiel.measure.agents import load_policy
from gamespiel.measure.episodes import (
    measure_groups,
    measure_played,
    play_agent,
    play_policy,
    reply_constraint,
)
from gamespiel.measure.options import EvalOptions, place
from gamespiel.measure.records import records, write_records
from gamespiel.report.console import make_console
from gamespiel.report.results import check_writable, reserve_results, write_json
from gamespiel.report.tables import evaluation_table, exact_table, reply_evaluation_table
from gamespiel.report.text import print_plain

if TYPE_CHECKING:  # baselines are evaluated without a learning library
    from gamespiel.agents.policy import LLMPolicy

Played = Mapping[str, list[Episode]]
"""The episodes of an evaluation, by how the policy answered: "sampled", "greedy" or "masked"."""


def evaluate(options: EvalOptions, console: Console | None = None) -> dict[str, Any]:
    """Plays or solves, prints a table, and writes a JSON file; returns the results as plain data.

    Raises:
        TaskGymError: the checkpoint, agent, model, opponent or game cannot be evaluated as asked.
    """
    if options.agent is None:
        check_trainer("the evaluation of a policy")
    console = console or make_console()
    config, kind = import_own_modules(options.config), kind_of(options.config.env)
    if config != (measured := evaluation_config(config)):
        games: Any = measured.env
        others = format_opponent(games.opponent)
        said = f"opponent 'self' is for training: evaluated against {others}; --opponent names another"
        print_plain(console, said)
        config, options = measured, dataclasses.replace(options, config=measured)
    kind.check_playable(config.env, "evaluation")
    if options.greedy and options.agent:
        raise InvalidValueError(f"--greedy is for a checkpoint: {options.agent!r} has no probabilities")
    if options.exact:
        kind.exact_game(config.env).check_size()  # raises if there are no exact values
    for notice in evaluation_notices(config):
        print_plain(console, notice)
    if options.replies:
        kind.make_reply_env(config.env).close()  # raises if replies cannot be evaluated
    env = make_one_env(config.env)
    tasks = kind.task_names(env)
    results = _describe_evaluation(options, config, tasks)
    if options.save_games is not None:
        check_writable(options.save_games, "--save_games")  # not only after hours of play
    policy = None
    if options.agent is None:
        policy, loaded = load_policy(config, options.checkpoint, console, env)
        if loaded is not None:
            results["checkpoint"] = loaded
    label = kind.file_label(config.env, tasks)
    where = kind.describe_tasks(config.env, tasks, options.agent, replies=options.replies)
    with reserve_results(results, place(label, options), options.output) as path:
        values, played = _measure_values(options, config, policy, where, console)
        write_json(results | values, path)
    results |= values
    if options.save_games is not None:
        rows, tracks = [], options.tracks
        for how, episodes in played.items():
            track = tracks["sampled"] if how == "masked" else tracks.get("replies", tracks.get("sampled"))
            rows += records(episodes, config.env, options.player, policy, how=how, track=track)
        write_records(options.save_games, rows)
        print_plain(console, f"{len(rows)} episodes written to {options.save_games}")
    print_plain(console, f"written to {path}")
    return results


def _describe_evaluation(options: EvalOptions, config: Config, tasks: Any) -> dict[str, Any]:
    """Returns what is evaluated: the agent, the environment and how the agent answers."""
    question: dict[str, Any] = {
        "agent": options.player,
        "greedy": options.greedy,
        "seed": config.run.seed,
        "num_episodes": None if options.exact else options.num_episodes,
        "env": to_dict(pin_tasks(config))["env"],
        "games": tasks,
        "tracks": options.tracks,
    }
    if options.agent is None:
        question["model"] = to_dict(config)["model"]
    if options.replies:
        question |= {
            "decode": "choice and text" if options.unmasked else "text",
            "max_new_tokens": options.reply_tokens,
        }
    if config.env.decode == "text" and options.agent is None:
        question["temperature"] = config.ppo.temperature
    return question


def _measure_values(
    options: EvalOptions,
    config: Config,
    policy: LLMPolicy | None,
    where: str,
    console: Console,
) -> tuple[dict[str, Any], Played]:
    """Plays or solves, and prints the table; returns the values as plain data, and what was played."""
    count = options.num_episodes
    if options.replies:
        assert policy is not None
        return _reply_values(options, config, policy, where, console)
    if options.exact:
        print_plain(console, f"solving {where} exactly")
        game = kind_of(config.env).exact_game(config.env)
        if policy is None:
            comparison = game.compare_agent(options.player)
        else:
            comparison = game.compare_policy(policy, trained=options.checkpoint is not None)
        console.print(exact_table(comparison))
        return {"exact": comparison.to_dict()}, {}
    if policy is None:
        episodes = play_agent(config, options.player, count, console)
        rows = measure_groups(config, episodes, measure)
    else:
        episodes = play_policy(config, policy, count, console, greedy=options.greedy)
        rows = measure_played(config, policy, episodes)
    who = f"{options.player}, greedy" if options.greedy else options.player
    console.print(evaluation_table(f"{who} on {where}", rows, kind_of(config.env).unit))
    return {"sampled": _rows_to_dict(rows)}, {"greedy" if options.greedy else "sampled": episodes}


def _reply_values(
    options: EvalOptions,
    config: Config,
    policy: LLMPolicy,
    where: str,
    console: Console,
) -> tuple[dict[str, Any], Played]:
    """Plays by replies, sampled and greedy, and behind the mask if asked to; prints the table.

    Returns the values as plain data, and what was played.
    """
    count = options.num_episodes
    played: dict[str, list[Episode]] = {}
    masked: Mapping[str, Measured] = {}
    if options.unmasked:
        played["masked"] = play_policy(config, policy, count, console, when="masked: ")
        masked = measure_played(config, policy, played["masked"])
    free = reply_constraint(policy, options.reply_tokens)
    replies: dict[str, Mapping[str, MeasuredReplies]] = {}
    for how in ("sampled", "greedy"):
        played[how] = play_policy(config, policy, count, console, free=free, greedy=how == "greedy")
        replies[how] = measure_groups(config, played[how], measure_replies)
    console.print(reply_evaluation_table(f"{options.player} on {where}", masked, replies))
    values: dict[str, Any] = {"sampled": _rows_to_dict(masked)} if options.unmasked else {}
    return values | {"replies": {how: _rows_to_dict(rows) for how, rows in replies.items()}}, played


def _rows_to_dict(rows: Mapping[str, Measured]) -> dict[str, Any]:
    return {name: row.to_dict() for name, row in rows.items()}
