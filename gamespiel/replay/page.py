"""Recorded episodes as a page that replays them, and as rows in chat format: `gamespiel replay`, `export`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from game_gym.transcript import CHANCE, positions, show
from gamespiel.errors import ConfigError, InvalidValueError
from gamespiel.measure.records import GAME_KIND, Record, read_records, variant_of
from gamespiel.replay.boards import read_board
from gamespiel.report.console import make_console
from gamespiel.report.text import print_plain
from task_gym.contract import ILLEGAL_REWARD
from task_gym.errors import TaskGymError, quote
from task_gym.files import write_atomically

HERE = Path(__file__).parent

MOST = 1000
"""The most episodes of a page."""

RESULTS = ("win", "draw", "loss", "cut")
"""The endings of episodes."""

_UNPLAYABLE = (ValueError, LookupError, TypeError, OverflowError, RecursionError, RuntimeError)
"""Errors that a record of an impossible shape can raise; OpenSpiel's errors are RuntimeErrors."""

LARGEST = 100_000_000
"""The most characters of a page's episodes: browsers do not read texts of 512 MB."""

LONGEST = LARGEST
"""The most characters of the positions of one episode: a stranger's board can have any size."""


def write_page(place: Path, html: Path, console: Console | None = None, *, allow_files: bool = False) -> Path:
    """Writes the page of a run's games, or of a file of games.

    Args:
        place: The run's folder, or the file.
        html: The page.
        console: Where to print.
        allow_files: Whether a recorded game's parameter may name a file, which is then opened.

    Raises:
        TaskGymError: there are no such games, one cannot be played again, or the page has no name that ends
            in .html.
    """
    console = console or make_console()
    check_page(html)
    rows = read_records(place)

    def encode(number: int, row: Record) -> str:
        try:
            return encode_record(row, allow_files)
        except (TaskGymError, *_UNPLAYABLE) as error:
            reason = " ".join(str(error).split())
            raise ConfigError(f"{str(place)!r}, game {number} cannot be replayed: {reason}") from error

    count = write_episodes(html, (encode(*pair) for pair in enumerate(rows[:MOST], 1)), LARGEST)
    if count < len(rows):
        console.print(f"the page shows the first {count} of {len(rows)} episodes")
    print_plain(console, f"{count} episodes written to {html}")
    return html


def check_page(html: Path) -> None:
    """Raises InvalidValueError unless a page's name ends in .html."""
    if html.suffix != ".html":
        raise InvalidValueError(f"--html must end in .html, not {quote(str(html))}")


def write_episodes(html: Path, episodes: Iterable[str], most: int, **more: str) -> int:
    """Writes a page of the first episodes, which have so many characters together; returns their number.

    Args:
        html: The page.
        episodes: What ``encode_record`` returns for each. The first one has any size.
        most: The most characters.
        **more: As ``fill_page`` takes them.
    """
    fitting, size = list[str](), 0
    for text in episodes:
        size += len(text)
        if fitting and size > most:
            break
        fitting.append(text)
    html.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(html, fill_page(fitting, **more))
    return len(fitting)


def encode_record(row: Record, allow_files: bool = False) -> str:
    """Returns an episode as JSON for a page's script."""
    # "<" is escaped, so that no text of a game or a model can end the script. Half a surrogate pair has no
    # UTF-8.
    text = json.dumps(describe_record(row, allow_files=allow_files), ensure_ascii=False)
    return text.encode(errors="replace").decode().replace("<", "\\u003c")


def fill_page(
    episodes: Sequence[str], *, title: str = "GameSpiel replay", before: str = "", style: str = ""
) -> str:
    """Returns the page of encoded episodes. It loads nothing from elsewhere.

    Args:
        episodes: What ``encode_record`` returns for each.
        title: The page's title, as HTML.
        before: HTML above the replay.
        style: Rules that follow those of the replay.
    """
    parts = {
        "STYLE": (HERE / "viewer.css").read_text(encoding="utf-8") + style,
        "SCRIPT": (HERE / "viewer.js").read_text(encoding="utf-8"),
        "DATA": f"[{', '.join(episodes)}]",
        "TITLE": title,
        "BEFORE": before,
    }
    template = (HERE / "viewer.html").read_text(encoding="utf-8")
    # In one pass: what is put in may have any text in it.
    return re.sub(r"%([A-Z]+)%", lambda mark: parts[mark[1]], template)


def describe_record(row: Record, *, allow_files: bool = False) -> dict[str, Any]:
    """Returns what the page shows of an episode: its address, its ending and its positions.

    A position has ``text``; ``board`` if the game is drawn; ``move`` and ``by``, what led to it; and
    ``turn``, the number of the player's turn that is decided there. The page opens on position ``opening``,
    the first one that chance does not leave: before it cards are dealt.
    """
    known = ("game", "opponent", "result", "score", "player", "seat", "seed", "task_id", "step", "returns")
    shared = ("names", "action", "answer", "probabilities", "value")
    turns = [{"legal": turn["legal_actions"], **{key: turn[key] for key in shared}} for turn in row["turns"]]
    is_game = row["env_type"] == GAME_KIND and isinstance(row["history"], list)
    places = _game_positions(row, allow_files) if is_game else _text_positions(row)
    opening = next((number for number, place in enumerate(places[1:]) if place["by"] != "chance"), 0)
    return {**{key: row.get(key) for key in known}, "turns": turns, "positions": places, "opening": opening}


def _text_positions(row: Record) -> list[dict[str, Any]]:
    """Returns the observations as positions: of a trace, or of a server that does not say the moves."""
    places: list[dict[str, Any]] = []
    by = move = ""
    for number, turn in enumerate(row["turns"]):
        places.append({"text": turn["observation"], "board": None, "turn": number, "by": by, "move": move})
        by, move = "player", turn["answer"]
    last = {"text": row["final_observation"], "board": None, "turn": None, "by": by, "move": move}
    return [*places, last]


def _game_positions(row: Record, allow_files: bool) -> list[dict[str, Any]]:
    """Returns the positions of a game, which is played again from its history."""
    places: list[dict[str, Any]] = []
    by = move = ""
    # An illegal action leaves its position: the turn shown there is the last one.
    legal_turns = [number for number, turn in enumerate(row["turns"]) if turn["action"] is not None]
    variant, size = variant_of(row, allow_files=allow_files), 0
    for state, moves in positions(variant, row["history"]):
        is_turn = any(played.player == row["seat"] for played in moves)
        number = legal_turns.pop(0) if is_turn and legal_turns else None
        if not moves and row["turns"] and row["turns"][-1]["action"] is None:
            number = len(row["turns"]) - 1  # the player gave the game up here
        text, board = show(variant, state), read_board(row["game"], str(state))
        size += len(text)
        if size > LONGEST:
            raise InvalidValueError(f"its positions have more than {LONGEST:,} characters, which is the most")
        places.append({"text": text, "board": board, "by": by, "move": move, "turn": number})
        by = " and ".join(dict.fromkeys(_name_player(row, played.player) for played in moves))
        move = ", ".join(played.name for played in moves)
    places[-1]["text"] += f"\n\n{row['final_observation']}"
    return places


def _name_player(row: Record, player: int) -> str:
    if player == CHANCE:
        return "chance"
    return "player" if player == row["seat"] else f"opponent (Player {player})"


def export_turns(
    place: Path, output: Path, *, results: Sequence[str] = (), console: Console | None = None
) -> Path:
    """Writes a row per turn: the observation as the user's message, the answer as the assistant's.

    Args:
        place: A run's folder, or a file of games.
        output: The file, which ends in .jsonl. ``datasets.load_dataset("json", data_files=…)`` reads it.
        results: Only episodes that ended so; none for all.
        console: Where to print.

    Raises:
        TaskGymError: there are no such games, or an option is wrong.
    """
    console = console or make_console()
    if output.suffix != ".jsonl":
        raise InvalidValueError(f"--output must end in .jsonl, not {str(output)!r}")
    for result in results:
        if result not in RESULTS:
            raise InvalidValueError(f"--result must be one of {', '.join(RESULTS)}, not {result!r}")
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in make_rows(read_records(place), results)]
    output.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(output, "".join(lines).encode(errors="replace"))  # half a surrogate pair has no UTF-8
    print_plain(console, f"{len(lines)} rows written to {output}")
    return output


def make_rows(records: Sequence[Record], results: Sequence[str] = ()) -> Iterator[dict[str, Any]]:
    """Yields a row per legal turn. Faults are left out, and so are answers that the game refused."""
    keys = ("game", "task_id", "seed", "seat", "opponent", "result", "score")
    for record in records:
        if record["result"] not in (results or RESULTS):
            continue
        for number, turn in enumerate(record["turns"]):
            refused = turn["names"] is not None and turn["action"] is None
            if refused or turn["reward"] == ILLEGAL_REWARD:  # a server may keep the names to itself
                continue
            yield {
                "messages": _list_messages(record, number),
                "turn": number,
                **{key: record[key] for key in keys},
            }


def _list_messages(record: Record, number: int) -> list[dict[str, str]]:
    """Returns what was asked and answered in a turn, after all that came before if it was a conversation."""
    turn, messages = record["turns"][number], record.get("conversation")
    answer = {"role": "assistant", "content": turn["answer"]}
    if messages is None:
        return [{"role": "user", "content": turn["observation"]}, answer]
    head = bool(messages) and messages[0]["role"] == "system"
    return [*messages[: head + 2 * number + 1], answer]
