"""``gamespiel eval`` of an agent behind an endpoint: here, or by the ``evaluate`` of an affinetes server."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from gamespiel.config import Config, InvalidValueError, require_built, to_dict
from gamespiel.endpoints import EPISODE_S
from gamespiel.endpoints.chat import LOST, Chat, EndpointError, Sampling
from gamespiel.endpoints.completion import Usage
from gamespiel.endpoints.endpoint import parse_endpoint
from gamespiel.endpoints.opponent import close_opponents
from gamespiel.endpoints.patience import patience_of_agents
from gamespiel.environments.making import pin_tasks
from gamespiel.kinds import declaration_of, kind_of
from gamespiel.kinds.base import EpisodeAddress, server_arguments
from gamespiel.measure.options import EvalOptions, place
from gamespiel.report.endpoints import endpoint_table, rows_of
from gamespiel.report.progress import report_progress
from gamespiel.report.results import reserve_results, write_json
from task_gym.errors import BackendError
from task_gym.files import NO_JSON, append_line, explain_json, write_atomically
from task_gym.remote import Failure, connect, read_settings

LATER = 60.0
"""Seconds that a server's answer may come after the episode's own time limit."""

SOON = 5.0
"""Most seconds for which Ctrl-C waits for the threads. One that is in an opponent's search ends after it."""


class EpisodePlayer(NamedTuple):
    """The two functions that play episodes and stop them.

    Attributes:
        play: Plays one and returns its record.
        stop: Gives up all that are under way: ``play`` raises.
    """

    play: Callable[[EpisodeAddress], dict[str, Any]]
    stop: Callable[[], None]


def evaluate_endpoint(options: EvalOptions, console: Console | None = None) -> dict[str, Any]:
    """Plays, prints a table, and writes a JSON file; returns the results as plain data.

    Every episode is also written to a file as soon as it is over. If the endpoint goes away, or on Ctrl-C,
    that file stays, and ``--resume`` plays the rest.

    Raises:
        EndpointError: the endpoint is away or refuses requests; the message says what is kept.
        TaskGymError: the agent, the server or the tasks cannot be evaluated as asked.
    """
    console = console or Console()
    config, kind = require_built(options.config), kind_of(options.config.env)
    assert options.agent is not None
    sampling = Sampling(options.temperature, options.max_new_tokens)
    chat = Chat(parse_endpoint(options.agent), sampling, patience_of_agents(options.request_s))
    player = (
        _make_server_player(options, config, chat)
        if options.whole_game
        else _make_local_player(options, config, chat)
    )
    addresses = kind.player.addresses(config.env, options.num_episodes, config.run.seed)
    question = _make_question(options, config, chat)
    first = options.output or place(kind.presenter.file_label(config.env, question["games"]), options)
    with (
        reserve_results(question, first, options.output) as path,
        _keep_episodes(question, first, options.resume, path, len(addresses), console) as (played, keep),
    ):
        left = [address for address in addresses if address.seed not in played]
        with report_progress(console, f"playing {len(left):,} {kind.declaration.unit}", len(left)) as on_step:
            _play_episodes(left, player, options.concurrency, keep, lambda: on_step(True, 1))
        records = [played[address.seed] for address in addresses]
        rows = rows_of(records, kind.presenter.endpoint_groups)
        usage, spent = _sum_usage(records), None
        if options.prices is not None:
            spent = (
                usage.prompt_tokens * options.prices[0] + usage.completion_tokens * options.prices[1]
            ) / 1e6
        where = kind.presenter.describe_reply_tasks(config.env, question["games"])
        console.print(endpoint_table(f"{chat.endpoint} on {where}", rows, usage, spent))
        results = question | {"endpoint": {name: row.to_dict() for name, row in rows.items()}}
        results |= {"usage": usage.to_dict(), "cost": spent}
        write_json(results, path)
    chat.close()
    console.print(f"written to {path}", soft_wrap=True, markup=False)
    return results


def _make_question(options: EvalOptions, config: Config, chat: Chat) -> dict[str, Any]:
    """Returns the results without their values."""
    env, player = pin_tasks(config).env, kind_of(config.env).player
    local = dataclasses.replace(env, env_mode="local")
    made = player.make_reply_env(dataclasses.replace(local, decode="text"))
    tasks = player.task_names(made)
    made.close()
    # A server has its own words.
    words = [] if options.whole_game else map(os.environ.get, player.text_variables())
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
    player = kind_of(config.env).player

    def play(address: EpisodeAddress) -> dict[str, Any]:
        return player.play_endpoint(chat, config.env, address, options.episode_s)

    def stop() -> None:
        chat.close()
        close_opponents()

    return EpisodePlayer(play, stop)


def _make_server_player(options: EvalOptions, config: Config, chat: Chat) -> EpisodePlayer:
    """Returns how a server plays an episode."""
    env, given = config.env, server_arguments(config.env)
    if not given:
        raise InvalidValueError("--whole_game is for --backend affinetes: a server plays the games")
    given.pop("backend")
    declaration = declaration_of(env)
    if declaration.served_as is None:
        raise InvalidValueError(f"--whole_game: no server plays {declaration.unit}")
    connection = connect(read_settings(given, declaration.served_as))
    limit = options.episode_s or EPISODE_S[declaration.served_as]
    common: dict[str, Any] = {
        "model": chat.endpoint.model,
        "base_url": chat.endpoint.base_url,
        "api_key": chat.endpoint.api_key or None,
        "temperature": options.temperature,
        "timeout": int(limit) if limit.is_integer() else limit,
    }
    if options.max_new_tokens is not None:
        common["max_tokens"] = options.max_new_tokens
    if declaration.has_opponents:
        common["opponent"] = getattr(env, "opponent")  # noqa: B009  (only one kind has this key)

    def play(address: EpisodeAddress) -> dict[str, Any]:
        if address.task_id is None:
            raise InvalidValueError("--whole_game needs task ids, which name the games that a server knows")
        try:
            found = connection.evaluate(limit + LATER, task_id=address.task_id, seed=address.seed, **common)
        except Failure as failure:
            if failure.kind == "refused" or failure.unreachable:
                raise BackendError(f"--whole_game: {failure.sentence}") from failure
            found = {"score": 0.0, "error": failure.sentence, "extra": {}}
        record = dict(found)
        if str(record.get("error", "")).startswith("[API_ERROR]"):  # upstream's, of games
            record["error_type"] = LOST
        return record

    return EpisodePlayer(play, connection.cancel)


def _play_episodes(
    addresses: Sequence[EpisodeAddress],
    player: EpisodePlayer,
    at_once: int,
    keep: Callable[[EpisodeAddress, dict[str, Any]], None],
    on_end: Callable[[], None],
) -> None:
    """Plays episodes, so many at once, and keeps each as soon as it is over.

    Raises:
        EndpointError: an endpoint failed an episode; those under way were played to their end first.
        KeyboardInterrupt: Ctrl-C; those under way were given up.
    """
    waiting, running = list(reversed(addresses)), set[Future[None]]()
    stopped = threading.Event()
    #: The episodes that threads play. ``running`` may lack one: Ctrl-C can come right after its submission.
    under_way: list[EpisodeAddress] = []

    def one(address: EpisodeAddress) -> None:
        under_way.append(address)
        try:
            if stopped.is_set():
                return
            record = player.play(address)
            if record.get("error_type") == LOST:
                raise EndpointError(str(record.get("error")))
            keep(address, record)
        finally:
            under_way.remove(address)

    failed: BaseException | None = None
    threads = ThreadPoolExecutor(at_once, thread_name_prefix="gamespiel.measure.external")
    try:
        while (waiting and failed is None) or running:
            while waiting and failed is None and len(running) < at_once:
                running.add(threads.submit(one, waiting.pop()))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                failed = failed or future.exception()
                on_end()
    except BaseException:
        stopped.set()
        end = time.monotonic() + SOON
        while under_way and time.monotonic() < end:
            player.stop()  # once is not enough: a thread may have been on its way to a request
            time.sleep(0.05)
        raise
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
    if failed is not None:
        raise failed


@contextmanager
def _keep_episodes(
    question: Mapping[str, Any], first: Path, resume: bool, results: Path, count: int, console: Console
) -> Iterator[tuple[dict[int, dict[str, Any]], Callable[[EpisodeAddress, dict[str, Any]], None]]]:
    """Yields the episodes that were played before, by seed, and the function that keeps another one.

    The file's name has the question in it, so it is found again, whatever number the results' file has: a
    kill leaves an empty one behind. It is removed if nothing was played.

    Args:
        question: The results without their values.
        first: The first choice of the results' file.
        resume: Whether what was played before counts. Faults do not: they are played again.
        results: The results' file.
        count: Number of episodes of the evaluation.
        console: The console to print on.

    Raises:
        InvalidValueError: there are such episodes, and ``resume`` is not set; or there are none, and it is.
    """
    text = json.dumps(question, sort_keys=True, ensure_ascii=False)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    file = first.with_name(f"{first.stem}-{digest}.jsonl")
    done = results.exists() and results.stat().st_size > 0
    played = _read_earlier(file, resume, count if done else None, console)
    lock = threading.Lock()

    def keep(address: EpisodeAddress, record: dict[str, Any]) -> None:
        line = json.dumps({**record, "seed": address.seed, "task_id": address.task_id}, ensure_ascii=False)
        # In JSON, a lone surrogate is written as Python's backslash replacement writes it.
        with lock:
            append_line(file, line, errors="backslashreplace")
            played[address.seed] = record

    try:
        yield played, keep
    except (BackendError, KeyboardInterrupt) as error:
        if not played:
            raise
        said = f"{len(played)} episodes were played and are kept in {file}; --resume plays the rest"
        if isinstance(error, BackendError):
            raise type(error)(f"{error}; {said}") from error
        console.print(said, soft_wrap=True, markup=False)
        raise


def _read_earlier(file: Path, resume: bool, count: int | None, console: Console) -> dict[int, dict[str, Any]]:
    """Returns the episodes of a file that count, by seed; removes the file if none do.

    Args:
        file: The file, which may not exist.
        resume: Whether what was played before counts.
        count: The number of episodes with which the evaluation is over; None if it has no results.
        console: The console to print on.
    """
    played = _read_episodes(file) if file.exists() else {}
    if not resume:
        if played and (count is None or len(played) < count):
            raise InvalidValueError(
                f"{file} has {len(played)} episodes of this evaluation: --resume plays the rest; remove the "
                "file to begin anew"
            )
        file.unlink(missing_ok=True)
        return {}
    if not played:
        raise InvalidValueError(f"--resume: there is no {file}, and so nothing was played before")
    counted = {seed: record for seed, record in played.items() if record.get("error") is None}
    faults = len(played) - len(counted)
    again = f"; {faults} that ended as faults are played again" if faults else ""
    said = f"going on with {len(counted)} episodes of {file}{again}"
    console.print(said, soft_wrap=True, markup=False)
    return counted


def _read_episodes(file: Path) -> dict[int, dict[str, Any]]:
    """Returns the whole lines of a file by seed; of a seed that was played again, the last one.

    A kill may have cut the last line, in mid-character.
    """
    played = {}
    whole, _, cut = file.read_bytes().rpartition(b"\n")
    for line in whole.splitlines():
        try:
            record = json.loads(line.decode())
            played[int(record["seed"])] = record
        except (*NO_JSON, LookupError, TypeError) as error:
            raise InvalidValueError(
                f"{file}: a line is no record of an episode: {explain_json(error)}; without it, --resume "
                "plays the rest"
            ) from error
    if cut:
        write_atomically(file, f"{whole.decode()}\n" if whole else "")
    return played


def _sum_usage(records: Sequence[Mapping[str, Any]]) -> Usage:
    total = Usage()
    for record in records:
        counted = record.get("extra", {}).get("usage") or {}
        total.add(Usage(int(counted.get("prompt_tokens") or 0), int(counted.get("completion_tokens") or 0)))
    return total
