"""``gamespiel eval`` of an agent behind an endpoint: here, or by the ``evaluate`` of an affinetes server."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from gamespiel.config import Config, InvalidValueError, import_own_modules, to_dict
from gamespiel.endpoints import EPISODE_S
from gamespiel.endpoints.at_once import play_at_once
from gamespiel.endpoints.chat import LOST, Chat
from gamespiel.endpoints.completion import Usage
from gamespiel.endpoints.opponent import close_opponents
from gamespiel.environments.making import pin_tasks
from gamespiel.kinds import kind_of
from gamespiel.kinds.keys import server_arguments
from gamespiel.kinds.kind import EpisodeAddress
from gamespiel.measure.journal import open_journal
from gamespiel.measure.options import EvalOptions, place
from gamespiel.measure.play import require_played
from gamespiel.report.console import make_console
from gamespiel.report.endpoints import has_failed, rows_of
from gamespiel.report.progress import report_progress
from gamespiel.report.results import reserve_results, write_json
from gamespiel.report.tables import endpoint_table
from task_gym.errors import BackendError
from task_gym.remote import Failure, connect, read_settings

LATER = 60.0
"""Seconds that a server's answer may come after the episode's own time limit."""


EpisodePlayer = tuple[Callable[[EpisodeAddress], dict[str, Any]], Callable[[], None]]
"""A function that plays an episode and returns its record, and one that gives up all under way."""


def evaluate_endpoint(options: EvalOptions, console: Console | None = None) -> dict[str, Any]:
    """Plays, prints a table, and writes a JSON file; returns the results as plain data.

    Every episode is also written to a file as soon as it is over. If the endpoint goes away, or on Ctrl-C,
    that file stays, and ``--resume`` plays the rest.

    Raises:
        EndpointError: the endpoint is away or refuses requests; the message says what is kept.
        TaskGymError: the agent, the server or the tasks cannot be evaluated as asked.
    """
    console = console or make_console()
    config, kind = import_own_modules(options.config), kind_of(options.config.env)
    assert options.agent is not None
    chat = options.open_chat(options.agent)
    make_player = _make_server_player if options.whole_game else _make_local_player
    play_episode, stop = make_player(options, config, chat)
    addresses = kind.addresses(config.env, options.num_episodes, config.run.seed)
    question = _make_question(options, config, chat)
    first = options.output or place(kind.file_label(config.env, question["games"]), options)

    def play(address: EpisodeAddress) -> None:
        record = require_played(play_episode(address))
        journal.keep({**record, "seed": address.seed, "task_id": address.task_id})

    with (
        reserve_results(question, first, options.output) as path,
        open_journal(
            question, first, lambda row: int(row["seed"]), has_failed, options.resume, console
        ) as journal,
    ):
        left = [address for address in addresses if address.seed not in journal.played]
        with report_progress(console, f"playing {len(left):,} {kind.unit}", len(left)) as on_step:
            play_at_once(left, play, stop, options.concurrency, lambda: on_step(True, 1))
        records = [journal.played[address.seed] for address in addresses]
        rows = rows_of(records, kind.endpoint_groups)
        usage = _sum_usage(records)
        spent = None if options.prices is None else usage.cost(*options.prices)
        where = kind.describe_tasks(config.env, question["games"], replies=True)
        console.print(endpoint_table(f"{chat.endpoint} on {where}", rows, usage, spent))
        results = question | {"endpoint": {name: row.to_dict() for name, row in rows.items()}}
        results |= {"usage": usage.to_dict(), "cost": spent}
        write_json(results, path)
    chat.close()
    console.print(f"written to {path}", soft_wrap=True, markup=False)
    return results


def _make_question(options: EvalOptions, config: Config, chat: Chat) -> dict[str, Any]:
    """Returns the results without their values."""
    env, kind = pin_tasks(config).env, kind_of(config.env)
    local = dataclasses.replace(env, env_mode="local")
    reply_env = kind.make_reply_env(dataclasses.replace(local, decode="text"))
    tasks = kind.task_names(reply_env)
    reply_env.close()
    # A server has its own words.
    words = [] if options.whole_game else map(os.environ.get, kind.text_variables())
    return {
        "agent": str(chat.endpoint),
        "by": "evaluate of a server" if options.whole_game else "evaluate",
        "temperature": options.temperature,
        "max_new_tokens": options.max_new_tokens,
        "episode_s": options.episode_s,
        "words": ", ".join(str(Path(place).resolve()) for place in words if place) or None,
        "seed": config.run.seed,
        "num_episodes": options.num_episodes,
        "env": to_dict(dataclasses.replace(config, env=env))["env"],
        "games": tasks,
        "tracks": options.tracks,
    }


def _make_local_player(options: EvalOptions, config: Config, chat: Chat) -> EpisodePlayer:
    if config.env.env_mode != "local":
        raise InvalidValueError(
            f"--agent {options.agent} with env.env_mode {config.env.env_mode}: give --whole_game, with which "
            "the server plays whole games with the model"
        )
    kind = kind_of(config.env)

    def play(address: EpisodeAddress) -> dict[str, Any]:
        return kind.play_endpoint(chat, config.env, address, options.episode_s)

    def stop() -> None:
        chat.close()
        close_opponents()

    return play, stop


def _make_server_player(options: EvalOptions, config: Config, chat: Chat) -> EpisodePlayer:
    """Returns how a server plays an episode."""
    env, arguments = config.env, server_arguments(config.env)
    if not arguments:
        raise InvalidValueError("--whole_game is for --backend affinetes: a server plays the games")
    arguments.pop("backend")
    kind = kind_of(env)
    if kind.served_as is None:
        raise InvalidValueError(f"--whole_game: no server plays {kind.unit}")
    connection = connect(read_settings(arguments, kind.served_as))
    limit = options.episode_s or EPISODE_S[kind.served_as]
    common: dict[str, Any] = {
        "model": chat.endpoint.model,
        "base_url": chat.endpoint.base_url,
        "api_key": chat.endpoint.api_key or None,
        "temperature": options.temperature,
        "timeout": int(limit) if limit.is_integer() else limit,
    }
    if options.max_new_tokens is not None:
        common["max_tokens"] = options.max_new_tokens
    if kind.has_opponents:
        common["opponent"] = getattr(env, "opponent")  # noqa: B009  (only one kind has this key)

    def play(address: EpisodeAddress) -> dict[str, Any]:
        if address.task_id is None:
            raise InvalidValueError("--whole_game needs task ids, which name the games that a server knows")
        try:
            answer = connection.evaluate(limit + LATER, task_id=address.task_id, seed=address.seed, **common)
        except Failure as failure:
            if failure.kind == "refused" or failure.unreachable:
                raise BackendError(f"--whole_game: {failure.sentence}") from failure
            answer = {"score": 0.0, "error": failure.sentence, "extra": {}}
        record = dict(answer)
        if str(record.get("error", "")).startswith("[API_ERROR]"):  # upstream's, of games
            record["error_type"] = LOST
        return record

    return play, connection.cancel


def _sum_usage(records: Sequence[Mapping[str, Any]]) -> Usage:
    total = Usage()
    for record in records:
        counted = record.get("extra", {}).get("usage") or {}
        total.add(Usage(int(counted.get("prompt_tokens") or 0), int(counted.get("completion_tokens") or 0)))
    return total
