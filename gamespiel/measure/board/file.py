"""A board's file: what it has, how its bytes are written, and how a stranger's file is read.

Beside it is a journal, which has every deal as soon as it is played: a kill loses the deals under way, but
for what endpoints said in them, which has files of its own.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from gamespiel.errors import ConfigError
from gamespiel.measure.board.agents import (
    BOARD_TRACKS,
    LONGEST_NAME,
    explain_entry,
    find_wrong_name,
    list_tasks,
)
from gamespiel.measure.board.benchmark import MOST_DEALS, NAME, DealSet, parse_deals
from gamespiel.measure.board.limits import read_limited
from gamespiel.measure.board.meetings import find_wrong_meeting, list_meeting_tasks
from gamespiel.measure.journal import Journal, Row
from gamespiel.measure.play import Match
from task_gym.errors import quote
from task_gym.files import NO_JSON, explain_json, read_file, write_atomically
from task_gym.remote.protocol import MOST_COUNTED

try:
    import fcntl
except ImportError:  # Windows: nothing keeps two commands apart there
    fcntl = None  # type: ignore[assignment]

FORMAT = "gamespiel leaderboard 2"
"""The format of the files that this version writes and reads."""

LARGEST = 256 << 20
"""The most bytes of a board, unpacked."""

MOST_AGENTS = 1000
"""The most agents and meetings of a board."""


class BoardError(ConfigError):
    """A file that is no board, or whose parts do not belong together."""


_CLOSED = with_config(ConfigDict(extra="forbid", strict=True))
_OPEN = with_config(ConfigDict(extra="allow", strict=True))

Name = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
Whole = Annotated[int, Field(ge=0, le=10**12)]
Action = Annotated[int, Field(ge=-1, le=10**9)]
# A whole number becomes a float, so that its bytes are not those of the board.
Number = Annotated[float, Field(ge=-1e12, le=1e12)]
Share = Annotated[float, Field(ge=0, le=1)]
LONGEST_REPLY, LONGEST_ERROR = 1 << 20, 10_000
"""The most characters of a reply and of an error; what is longer is cut before it is read or kept."""

Reply = Annotated[str, Field(max_length=LONGEST_REPLY)]

TOKENS = ("prompt_tokens", "completion_tokens")
"""The keys of an episode's tokens."""


@_CLOSED
class CostShape(TypedDict):
    """The types of what an episode cost. There are no tokens if the endpoint does not count them."""

    prompt_tokens: NotRequired[Annotated[int, Field(ge=0, lt=MOST_COUNTED)]]
    completion_tokens: NotRequired[Annotated[int, Field(ge=0, lt=MOST_COUNTED)]]
    seconds: Annotated[float, Field(ge=0, le=1e9)]


@_CLOSED
class RowShape(TypedDict):
    """The types of an episode's entries."""

    task: Name
    deal: Annotated[int, Field(ge=0, lt=MOST_DEALS)]
    task_id: Whole
    seed: Whole
    seat: Annotated[int, Field(ge=0, le=99)]
    opponent: Name
    score: Share | None
    result: Literal["win", "draw", "loss", "fault"]
    returns: Annotated[list[Number], Field(max_length=100, fail_fast=True)] | None
    history: Annotated[list[Action], Field(max_length=100_000, fail_fast=True)] | None
    chances: NotRequired[Annotated[list[Share], Field(max_length=100_000, fail_fast=True)]]
    replies: NotRequired[Annotated[list[Reply], Field(max_length=100_000, fail_fast=True)]]
    gave_up: NotRequired[bool]
    error: NotRequired[Annotated[str, Field(max_length=LONGEST_ERROR)]]
    cost: NotRequired[CostShape]


@_CLOSED
class EntryShape(TypedDict):
    """The types of an agent's entries, and of two agents that meet."""

    name: Annotated[str, Field(min_length=1, max_length=2 * LONGEST_NAME + len(" vs "))]
    agent: Annotated[str, Field(min_length=1, max_length=4096)]
    kind: Literal["baseline", "endpoint", "checkpoint", "model", "meeting"]
    rival: NotRequired[Name]
    track: Name | None
    env_type: NotRequired[Literal["openspiel", "trace"]]
    model: NotRequired[Annotated[str, Field(max_length=4096)]]
    asking: NotRequired[dict[str, bool | int | str | None]]
    checkpoint: NotRequired[Annotated[str, Field(max_length=4096)]]
    sha256: NotRequired[str]
    episodes: Annotated[list[RowShape], Field(max_length=1_000_000, fail_fast=True)]
    episodes_sha256: str


@_CLOSED
class BoardShape(TypedDict):
    """The types of a board's entries."""

    format: str
    benchmark: str
    deals: str
    track: Name
    rounds: Annotated[int, Field(ge=1, le=MOST_DEALS)]
    versions: dict[str, str]
    agents: Annotated[list[EntryShape], Field(max_length=MOST_AGENTS, fail_fast=True)]
    results: dict[str, Any]
    sha256: str


_SHAPE = TypeAdapter(BoardShape)
_ROW = TypeAdapter(RowShape)
_ENTRY = TypeAdapter(EntryShape)

Unit = tuple[str, str, int]
"""The name of an agent or of a meeting, a task and a deal: what is played together, and counts only whole."""


@dataclass
class Board:
    """The episodes of a benchmark, by agent.

    Attributes:
        deals: The deals.
        track: The track.
        rounds: Deals of each task that were planned.
        entries: The entries of agents by name, and of two that meet, which come after both.
        played: The records of each unit, in the order of its matches.
    """

    deals: DealSet
    track: str
    rounds: int
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    played: dict[Unit, list[Row]] = field(default_factory=dict)

    @property
    def agents(self) -> dict[str, dict[str, Any]]:
        """The entries of agents."""
        return {name: entry for name, entry in self.entries.items() if entry["kind"] != "meeting"}

    @property
    def meetings(self) -> dict[str, dict[str, Any]]:
        """The entries of meetings."""
        return {name: entry for name, entry in self.entries.items() if entry["kind"] == "meeting"}

    def list_tasks(self, name: str) -> list[str]:
        """Returns the tasks of an agent or a meeting, in the order of a round."""
        entry = self.entries[name]
        if entry["kind"] != "meeting":
            return list_tasks(entry, self.track)
        return list_meeting_tasks(self.entries[entry["agent"]], self.entries[entry["rival"]], self.track)

    def list_matches(self, unit: Unit) -> list[Match]:
        """Returns the matches of a unit."""
        name, task, deal = unit
        entry = self.entries[name]
        if entry["kind"] == "meeting":
            return self.deals.list_meetings(task, deal, entry["rival"])
        return self.deals.list_matches(task, deal)

    def list_units(self, name: str) -> Iterator[Unit]:
        """Yields the units of an agent or a meeting in the order in which they count: round by round."""
        tasks = self.list_tasks(name)
        for deal in range(self.rounds):
            for task in tasks:
                yield name, task, deal

    def list_counted(self, name: str) -> list[Unit]:
        """Returns the units of an agent that count: those before the first one that is missing.

        So nobody can leave out what went badly, and keep what came after it.
        """
        units = []
        for unit in self.list_units(name):
            if unit not in self.played:
                break
            units.append(unit)
        return units

    def list_rows(self, name: str) -> list[Row]:
        """Returns the records of an agent that count."""
        return [row for unit in self.list_counted(name) for row in self.played[unit]]


def seal(data: Mapping[str, Any]) -> str:
    """Returns the digest of a board's bytes without its own."""
    return sha256(render({key: value for key, value in data.items() if key != "sha256"})).hexdigest()


def digest_episodes(name: str, rows: list[Row]) -> str:
    """Returns the digest of an agent's name and episodes."""
    return sha256(_encode([name, rows]).encode()).hexdigest()


def _encode(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def render(data: Mapping[str, Any]) -> bytes:
    """Returns a board's bytes: there is one way to write each. An episode has a line of its own."""
    lines = []
    for key in sorted(data):
        if key != "agents":
            lines.append(f"{_encode(key)}:{_encode(data[key])}")
            continue
        agents = []
        for entry in data[key]:
            rest = _encode({name: value for name, value in entry.items() if name != "episodes"})
            rows = ",\n".join(map(_encode, entry["episodes"]))
            agents.append(f'{{"about":{rest},"episodes":[\n{rows}\n]}}')
        lines.append(f'"agents":[\n{",".join(agents)}\n]')
    return ("{\n" + ",\n".join(lines) + "\n}\n").encode("ascii")


_GZIP = bytes.fromhex("1f8b08000000000002ff")
"""The head of a packed board: no time, no name, no system."""


def pack(content: bytes) -> bytes:
    """Returns the bytes of a .gz file, the same at any time."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return _GZIP + (squeeze.compress(content) + squeeze.flush())[len(_GZIP) :]


def unpack(packed: bytes, where: str) -> bytes:
    """Returns what a .gz file has, if it is not too much.

    Raises:
        BoardError: it is too much, another program packed it, or a byte was changed.
    """
    if packed[:10] != _GZIP:
        raise BoardError(
            f"{where}: byte 0: a packed board begins with {_GZIP.hex()}, this file with {packed[:10].hex()}"
        )
    stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        content = stream.decompress(packed, LARGEST + 1)
    except zlib.error as error:
        raise BoardError(f"{where} cannot be unpacked: {error}") from error
    if len(content) > LARGEST:
        raise BoardError(f"{where} has more than {LARGEST >> 20} MiB unpacked, which is the most of a board")
    if not stream.eof or stream.unused_data:
        raise BoardError(f"{where} cannot be unpacked: it is cut, or has more at its end")
    return content


def write_board(path: Path, data: Mapping[str, Any]) -> dict[str, Any]:
    """Writes a board, whole or not at all, packed if the name ends in .gz; returns it with its digest."""
    sealed = {**data, "sha256": seal(data)}
    content = render(sealed)
    write_atomically(path, pack(content) if path.suffix == ".gz" else content)
    return sealed


def make_data(board: Board, versions: Mapping[str, str], results: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a board as plain data, without its digest."""
    agents = []
    for name, entry in board.entries.items():
        rows = board.list_rows(name)
        agents.append({**entry, "episodes": rows, "episodes_sha256": digest_episodes(name, rows)})
    return {
        "format": FORMAT,
        "benchmark": NAME,
        "deals": board.deals.name,
        "track": board.track,
        "rounds": board.rounds,
        "versions": dict(versions),
        "agents": agents,
        "results": dict(results),
    }


def read_bytes(path: Path) -> bytes:
    """Returns the content of a board's file, unpacked.

    Raises:
        BoardError: it cannot be read, or is too large.
    """
    where = repr(str(path))
    try:
        content = read_file(path, LARGEST)
    except OSError as error:
        raise BoardError(f"{where} cannot be read: {error.strerror}") from error
    return unpack(content, where) if path.suffix == ".gz" else content


def parse_board(content: bytes, where: str) -> dict[str, Any]:
    """Returns a board as plain data, with every type as it must be.

    Raises:
        BoardError: it is no board; the message says where.
    """
    try:
        shaped = _SHAPE.validate_python(_join_about(read_limited(content)))
    except ValidationError as error:
        raise BoardError(f"{where} is no board: {explain_shape(error)}") from error
    except NO_JSON as error:
        raise BoardError(f"{where} is no board: {explain_json(error)}") from error
    if shaped["format"] != FORMAT:
        raise BoardError(f"{where} has the format {shaped['format']!r:.60}; this version reads {FORMAT!r}")
    if shaped["benchmark"] != NAME:
        raise BoardError(
            f"{where} is of the benchmark {shaped['benchmark']!r:.60}; this version has {NAME!r}"
        )
    if wrong := find_wrong_name([entry["name"] for entry in shaped["agents"]]):
        raise BoardError(f"{where} is no board: it has {wrong}")
    if (track := shaped["track"]) not in BOARD_TRACKS:
        raise BoardError(f"{where} is of the track {quote(track)}; allowed: {', '.join(BOARD_TRACKS)}")
    if wrong := find_wrong_meeting(shaped["agents"], track):
        raise BoardError(f"{where} is no board: {wrong}")
    return dict(shaped)


def find_wrong_entries(board: Board) -> str:
    """Returns why a file with a board's agents and meetings could not be read again; "" if it could."""
    if (count := len(board.entries)) > MOST_AGENTS:
        return f"it would have {count:,} agents and meetings, allowed: {MOST_AGENTS:,}"
    entries = list(board.entries.values())
    return find_wrong_name(list(board.entries)) or find_wrong_meeting(entries, board.track)


def _check_shape(shape: TypeAdapter[Any], value: Any, where: str) -> None:
    try:
        shape.validate_python(value)
    except ValidationError as error:
        raise BoardError(f"{where}: {explain_shape(error)}") from error


def explain_shape(error: ValidationError) -> str:
    """Returns where a value has another type than it must, and which value is there."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place or 'it'}: {first['msg']}, not {first['input']!r:.60}"


def _join_about(document: Any) -> Any:
    """Returns the data with what is said of an agent and its episodes in one object, if it has both."""
    if not isinstance(document, dict) or not isinstance(document.get("agents"), list):
        return document
    agents = []
    for pair in document["agents"]:
        if not (
            isinstance(pair, dict) and set(pair) == {"about", "episodes"} and isinstance(pair["about"], dict)
        ):
            raise ValueError("each of its agents is an object with the names about and episodes")
        if "episodes" in pair["about"]:
            raise ValueError("about has no episodes of its own")
        agents.append({**pair["about"], "episodes": pair["episodes"]})
    return {**document, "agents": agents}


def read_board(path: Path) -> dict[str, Any]:
    """Returns a file's board as plain data.

    Raises:
        BoardError: it is no board, or its bytes are not as they were written.
    """
    content = read_bytes(path)
    data = parse_board(content, repr(str(path)))
    if seal(data) != data["sha256"] or render(data) != content:
        raise BoardError(f"{str(path)!r} was changed after it was written: gamespiel verify says where")
    return data


def load_board(path: Path) -> Board:
    """Returns the board of a file, to go on with it.

    Raises:
        BoardError: it is no board, or its bytes are not as they were written.
    """
    data = read_board(path)
    board = Board(parse_deals(data["deals"]), data["track"], data["rounds"])
    for entry in data["agents"]:
        name = entry["name"]
        about = {key: value for key, value in entry.items() if key not in ("episodes", "episodes_sha256")}
        if wrong := explain_entry(about, board.track):
            raise BoardError(f"{str(path)!r}: {name!r:.80}: {wrong}")
        board.entries[name] = about
        keep_units(board, name, entry["episodes"])
    return board


def keep_units(board: Board, name: str, rows: list[Row]) -> None:
    """Puts the records of an agent into a board, unit by unit; those of a unit that is not whole are left."""
    units: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        units.setdefault((row["task"], row["deal"]), []).append(row)
    for (task, deal), unit_rows in units.items():
        if len(unit_rows) == len(board.list_matches((name, task, deal))):
            board.played[name, task, deal] = unit_rows


def check_deals(board: Board) -> None:
    """Raises unless every episode is that of its deal.

    Raises:
        BoardError: one is another, as in a board of another version.
    """
    for unit, rows in board.played.items():
        for match, row in zip(board.list_matches(unit), rows, strict=True):
            for key in ("task_id", "seed", "seat", "opponent"):
                if row[key] != getattr(match, key):
                    raise BoardError(
                        f"the board has other episodes than its deals: {quote(unit[0])}, {match}: {key} is "
                        f"{row[key]!r:.80}, and the deal has {getattr(match, key)!r:.80}: it is of another "
                        "version, or was changed; gamespiel verify says more"
                    )


def describe_head(board: Board) -> dict[str, str]:
    """Returns the first line of a board's journal."""
    return {"deals": board.deals.name, "track": board.track}


def open_journal(board: Board, path: Path) -> Journal[tuple[Any, ...]]:
    """Returns the journal beside a board, after what an earlier command left in it was put into the board.

    Raises:
        BoardError: it is of another board, or cannot be read.
    """
    head = describe_head(board)

    def find_key(row: Row) -> tuple[Any, ...]:
        if "unit" in row:
            name, task, deal = row["unit"]
            for episode in row["rows"]:
                _check_shape(_ROW, episode, f"{name}, {task}, deal {deal}")
            return name, task, deal
        if "entry" in row:
            entry = row["entry"]
            _check_shape(_ENTRY, {**entry, "episodes": [], "episodes_sha256": ""}, "entry")
            if wrong := explain_entry(entry, board.track):
                raise BoardError(f"{quote(entry['name'])}: {wrong}")
            return (entry["name"],)
        if row != head:
            raise ValueError(f"it is of the board {json.dumps(row):.120}, not {json.dumps(head)}")
        return ()

    advice = "without this file, what was played since the board was written is played again"
    journal = Journal(path.with_name(f"{path.name}.journal"), find_key, BoardError, advice)
    for key, row in journal.played.items():
        if "entry" in row:
            board.entries.setdefault(key[0], row["entry"])
    if wrong := find_wrong_entries(board):
        raise BoardError(f"{str(journal.file)!r}: with it the board would be none: {wrong}; {advice}")
    for key, row in journal.played.items():
        if "unit" in row and key[0] in board.entries:
            keep_units(board, key[0], row["rows"])
    return journal


@contextmanager
def lock_board(path: Path) -> Iterator[None]:
    """Keeps a board from other commands within the context.

    Raises:
        BoardError: another command plays it.
    """
    lock = path.with_name(f".{path.name}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise BoardError(f"another command plays the board {str(path)!r} now") from error
        yield
    finally:
        os.close(handle)
