"""``gamespiel leaderboard``: plays what is missing of a board, and writes it."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import platform
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from glob import escape
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from itertools import combinations, islice
from pathlib import Path
from typing import Any

from rich.console import Console

from gamespiel.config.imports import import_modules
from gamespiel.errors import InvalidValueError
from gamespiel.measure.board.agents import describe, read_agents
from gamespiel.measure.board.benchmark import FIXED, MOST_DEALS, SCALES_FILE, TASK_NAMES, parse_deals
from gamespiel.measure.board.file import (
    Board,
    BoardError,
    Unit,
    check_deals,
    describe_head,
    find_wrong_entries,
    load_board,
    lock_board,
    make_data,
    open_journal,
    read_board,
    write_board,
)
from gamespiel.measure.board.meetings import describe_meeting, explain_no_meeting, list_meeting_tasks
from gamespiel.measure.board.players import MeetingPlayer, Opened, make_player, open_requests, play_deal
from gamespiel.measure.board.prices import check_priced, read_prices
from gamespiel.measure.board.results import summarize
from gamespiel.measure.journal import Journal, Row
from gamespiel.measure.options import EndpointOptions, check_least
from gamespiel.measure.play import MatchPlayer
from gamespiel.report.console import make_console
from gamespiel.report.text import print_plain
from gamespiel.stopping import interrupting
from gamespiel.tracks import MASKED
from task_gym.errors import quote

EVERY = 30.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True)
class BoardOptions(EndpointOptions):
    """The options of ``gamespiel leaderboard``.

    Attributes:
        path: The board's file, which is made or gone on with; it ends in .json or .json.gz.
        agents: The agents that play, as NAME or LABEL=NAME; none: only the file is shown.
        meetings: Whether these agents also meet each other.
        rounds: Deals of each task.
        track: The track.
        deals: The deals: ``fixed``, or DATE:HASH.
        seconds: Seconds after which no further deal is begun; None for no limit.
        games: Episodes after which no further deal is begun; None for no limit.
        processes: Processes that play.
        imports: Modules that processes import first.
        prices: The prices of agents' tokens, as NAME=IN:OUT; see ``read_prices``.

    Raises:
        InvalidValueError: a value out of range.
    """

    path: Path
    agents: tuple[str, ...] = ()
    meetings: bool = False
    rounds: int = 1
    track: str = MASKED
    deals: str = FIXED
    seconds: float | None = None
    games: int | None = None
    processes: int = 1
    imports: tuple[str, ...] = ()
    prices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not str(self.path).endswith((".json", ".json.gz")):
            raise InvalidValueError(f"--board must end in .json or .json.gz, not {quote(str(self.path))}")
        if not 1 <= self.rounds <= MOST_DEALS:
            raise InvalidValueError(f"--rounds must be 1 … {MOST_DEALS:,}, not {self.rounds}")
        if self.seconds is not None and not self.seconds > 0:  # NaN is neither
            raise InvalidValueError(f"--seconds must be above 0, not {self.seconds}")
        check_least(self, games=1)
        read_prices(self.prices)
        if not 1 <= self.processes <= 256:
            raise InvalidValueError(f"--processes must be 1 … 256, not {self.processes}")


def list_versions() -> dict[str, str]:
    """Returns the versions that decide what is played, and the anchors' ratings by their digest."""
    versions = {
        "python": platform.python_version(),
        "anchors": sha256(SCALES_FILE.read_bytes()).hexdigest()[:12],
    }
    for name in ("gamespiel", "open_spiel", "numpy", "torch", "transformers"):
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def play_board(options: BoardOptions, console: Console | None = None) -> dict[str, Any]:
    """Plays what is missing of a board, and writes its file; returns the board as plain data.

    Every deal is also written to a file beside it as soon as it is over, and so is every reply of an endpoint
    in a deal under way. The same command goes on after a kill at any moment, and asks nobody a second time.

    Raises:
        TaskGymError: the agents, the deals or the file are not as asked, or an endpoint is away.
        KeyboardInterrupt: a signal; what was played is kept, and the board is written.
    """
    console = console or make_console()
    prices = read_prices(options.prices)
    if not options.agents:
        data = show_board(options.path)
        check_priced(prices, {entry["name"]: entry["kind"] for entry in data["agents"]})
        return data
    agents = read_agents(options.agents, options.track)
    with lock_board(options.path):
        board = _open_board(options)
        kinds = {name: entry["kind"] for name, entry in board.entries.items()}
        check_priced(prices, kinds | {agent.name: agent.kind for agent in agents})
        journal = open_journal(board, options.path)
        check_deals(board)
        entries = [describe(agent, board.track) for agent in agents]
        if options.meetings:
            entries += _pair_agents(board, entries, console)
        _enter(board, journal, entries)
        names = [entry["name"] for entry in entries]
        try:
            with interrupting():
                _play(board, journal, names, options, console)
        finally:
            data = write_board(options.path, make_data(board, list_versions(), summarize(board)))
            _close_journal(board, journal)
    return data


def show_board(path: Path) -> dict[str, Any]:
    """Returns a file's board as plain data, with its results made anew: a stranger may have written them.

    Raises:
        BoardError: it is no board, or its episodes are not those of its deals.
    """
    written, board = read_board(path), load_board(path)
    check_deals(board)
    data = make_data(board, written["versions"], summarize(board))
    if data["agents"] != written["agents"]:
        raise BoardError(f"{str(path)!r} has other episodes than its deals: gamespiel verify says where")
    return {**data, "sha256": written["sha256"]}


def _open_board(options: BoardOptions) -> Board:
    deals = parse_deals(options.deals)
    if not options.path.exists():
        return Board(deals, options.track, options.rounds)
    board = load_board(options.path)
    for name, value, asked in (
        ("deals", board.deals.name, deals.name),
        ("track", board.track, options.track),
    ):
        if value != asked:
            raise BoardError(
                f"{str(options.path)!r} is a board of --{name} {value}, and --{name} {asked} was asked: each "
                "has a board of its own"
            )
    board.rounds = max(board.rounds, options.rounds)
    return board


def _pair_agents(board: Board, entries: Sequence[dict[str, Any]], console: Console) -> list[dict[str, Any]]:
    """Returns the meetings of every two agents with a common game; prints who meets nobody.

    Raises:
        InvalidValueError: no two agents meet.
    """
    meet = []
    for entry in entries:
        if reason := explain_no_meeting(entry, board.track):
            print_plain(console, f"{quote(entry['name'])} meets nobody: {reason}")
        else:
            meet.append(entry)
    known = list(board.entries)  # the first one of two that have met stays the first
    meet.sort(key=lambda entry: known.index(entry["name"]) if entry["name"] in known else len(known))
    pairs = [pair for pair in combinations(meet, 2) if list_meeting_tasks(*pair, board.track)]
    if not pairs:
        raise InvalidValueError("--meetings: no two of these agents meet in a game for two players")
    return [describe_meeting(first["name"], second["name"], board.track) for first, second in pairs]


def _enter(board: Board, journal: Journal[Any], entries: Sequence[dict[str, Any]]) -> None:
    """Enters agents and meetings that the board does not have.

    Raises:
        BoardError: it has other ones of the same name, or would have too many or names that look alike.
    """
    for entry in entries:
        known = board.entries.setdefault(entry["name"], entry)
        if known != entry:
            differs = sorted(key for key in {*known, *entry} if known.get(key) != entry.get(key))
            raise BoardError(
                f"the board has another {quote(entry['name'])}: {differs[0]} is "
                f"{known.get(differs[0])!r:.80} there, and {entry.get(differs[0])!r:.80} here; LABEL=AGENT "
                "gives this one another name"
            )
    if wrong := find_wrong_entries(board):
        raise BoardError(f"the board cannot have them: {wrong}")
    if () not in journal.played:  # not before: a command that is refused leaves no file
        journal.keep(describe_head(board))
    for name, entry in board.entries.items():
        if (name,) not in journal.played:
            journal.keep({"entry": entry})


def _close_journal(board: Board, journal: Journal[Any]) -> None:
    """Removes the journal, unless it has deals that do not count yet, as after a gap."""
    counted = sum(len(board.list_counted(name)) for name in board.entries)
    if counted == len(board.played):
        journal.file.unlink(missing_ok=True)


def _list_missing(board: Board, names: Sequence[str]) -> Iterator[Unit]:
    """Yields the units that are missing, one agent or meeting after the other in each task of a round."""
    order: dict[tuple[int, int], list[Unit]] = {}
    for name in names:
        for unit in board.list_units(name):
            order.setdefault((unit[2], TASK_NAMES.index(unit[1])), []).append(unit)
    for place in sorted(order):
        yield from (unit for unit in order[place] if unit not in board.played)


def _play(
    board: Board, journal: Journal[Any], names: Sequence[str], options: BoardOptions, console: Console
) -> None:
    missing = list(_list_missing(board, names))
    if not missing:
        return
    planned = sum(1 for name in names for _ in board.list_units(name))
    print_plain(console, f"{len(missing):,} deals to play, of {planned:,}")
    if files := set(options.path.parent.glob(f"{escape(options.path.name)}.*.begun")):
        for file in files & {_locate_requests(board, unit, options.path) for unit in board.played}:
            file.unlink()  # a kill came between the deal's record and this
        if count := len(files & {_locate_requests(board, unit, options.path) for unit in missing}):
            print_plain(
                console, f"{count:,} of them were begun: what endpoints said in these is not asked again"
            )
    begun = _limit_units(missing, board, options)
    spoke = time.monotonic()
    play = _play_here if options.processes == 1 else _play_there
    played = play(begun, options, board.entries)
    for done, (unit, rows) in enumerate(played, 1):
        journal.keep({"unit": list(unit), "rows": rows})
        board.played[unit] = rows
        _locate_requests(board, unit, options.path).unlink(missing_ok=True)
        if time.monotonic() - spoke > EVERY:
            spoke = time.monotonic()
            print_plain(console, f"  {done:,} of {len(missing):,} deals: {unit[0]}, {unit[1]}")


def _locate_requests(board: Board, unit: Unit, path: Path) -> Path:
    """Returns the file of a deal's requests to endpoints, which is there until the deal is over.

    Its name follows from all that is played: other deals, tracks and models of the same name have others.
    """
    entry = board.entries[unit[0]]
    pair = [board.entries[entry[key]] for key in ("agent", "rival")] if entry["kind"] == "meeting" else []
    question = json.dumps([describe_head(board), entry, *pair, *unit[1:]], sort_keys=True)
    return path.with_name(f"{path.name}.{sha256(question.encode()).hexdigest()[:16]}.begun")


def _limit_units(units: Sequence[Unit], board: Board, options: BoardOptions) -> Iterator[Unit]:
    """Yields the units that may be begun: until the time is over, or so many episodes were begun."""
    deadline = math.inf if options.seconds is None else time.monotonic() + options.seconds
    left = math.inf if options.games is None else options.games
    for unit in units:
        if time.monotonic() > deadline or left <= 0:
            return
        left -= len(board.list_matches(unit))
        yield unit


Entries = dict[str, dict[str, Any]]
"""The entries of a board."""


class _Players:
    """The agents and meetings of a process, each made when it first plays."""

    def __init__(self, options: BoardOptions, entries: Entries) -> None:
        self._board = Board(parse_deals(options.deals), options.track, options.rounds, entries)
        self._opened, self._path = Opened(options), options.path
        self._agents = {agent.name: agent for agent in read_agents(options.agents, options.track)}
        self._players: dict[str, MatchPlayer] = {}

    def play(self, unit: Unit) -> list[Row]:
        """Returns the records of a unit, in the order of its matches."""
        if unit[0] not in self._players:
            self._players[unit[0]] = self._make_player(unit[0])
        self._opened.requests = open_requests(_locate_requests(self._board, unit, self._path))
        return play_deal(self._players[unit[0]], self._board.list_matches(unit))

    def _make_player(self, name: str) -> MatchPlayer:
        board, entry = self._board, self._board.entries[name]
        if entry["kind"] != "meeting":
            return make_player(self._agents[name], board.deals, board.track, self._opened)
        pair = self._agents[entry["agent"]], self._agents[entry["rival"]]
        return MeetingPlayer(pair, board.deals, board.track, self._opened)

    def close(self) -> None:
        """Closes all."""
        for player in self._players.values():
            player.close()


def _play_here(
    units: Iterator[Unit], options: BoardOptions, entries: Entries
) -> Iterator[tuple[Unit, list[Row]]]:
    players = _Players(options, entries)
    try:
        for unit in units:
            yield unit, players.play(unit)
    finally:
        players.close()


_players: _Players


def _begin_process(options: BoardOptions, entries: Entries, parent: int) -> None:
    """Prepares a process that plays; it ends if its parent does, however that ends."""
    global _players

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    with suppress(ImportError):
        import torch

        torch.set_num_threads(1)
    import_modules(options.imports)
    _players = _Players(options, entries)


def _play_unit(unit: Unit) -> list[Row]:
    return _players.play(unit)


def _play_there(
    units: Iterator[Unit], options: BoardOptions, entries: Entries
) -> Iterator[tuple[Unit, list[Row]]]:
    """Plays units in processes; yields them as they are over.

    Raises:
        BoardError: a process ended, as for want of memory.
    """
    # Not forked: threads of this process may have locks that a copy of it would never see free.
    context = multiprocessing.get_context("spawn")
    running: dict[Future[list[Row]], Unit] = {}
    pool = ProcessPoolExecutor(options.processes, context, _begin_process, (options, entries, os.getpid()))
    try:
        while True:
            for unit in islice(units, 2 * options.processes - len(running)):
                running[pool.submit(_play_unit, unit)] = unit
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), future.result()
    except BrokenProcessPool as error:
        raise BoardError(
            "a process that played has ended, as for want of memory; the same command goes on"
        ) from error
    finally:
        # Taken before, because a pool forgets its processes; Python's own end waits for the deals under way.
        processes = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()
