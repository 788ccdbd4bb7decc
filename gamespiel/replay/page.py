"""``gamespiel replay``: one self-contained page that replays recorded episodes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from game_gym.transcript import CHANCE, positions, show
from gamespiel.errors import ConfigError, InvalidValueError
from gamespiel.measure.records import GAME_KIND, Record, read_records, variant_of
from gamespiel.replay.boards import read_board
from task_gym.errors import TaskGymError
from task_gym.files import write_atomically

HERE = Path(__file__).parent

MOST = 1000
"""The most episodes of a page."""

_UNPLAYABLE = (ValueError, LookupError, TypeError, OverflowError, RecursionError, RuntimeError)
"""What a record of a shape that no game has can raise; OpenSpiel's errors are RuntimeErrors."""

LARGEST = 100_000_000
"""The most characters of a page's episodes: browsers do not read texts of 512 MB."""


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
    console = console or Console()
    if html.suffix != ".html":
        raise InvalidValueError(f"--html must end in .html, not {str(html)!r}")
    rows = read_records(place)
    fitting, size = [], 0
    for number, row in enumerate(rows[:MOST], 1):
        try:
            fitting.append(encode_record(row, allow_files))
        except (TaskGymError, *_UNPLAYABLE) as error:
            reason = " ".join(str(error).split())
            raise ConfigError(f"{str(place)!r}, game {number} cannot be replayed: {reason}") from error
        size += len(fitting[-1])
        if size > LARGEST and len(fitting) > 1:
            fitting.pop()
            break
    if len(fitting) < len(rows):
        console.print(f"the page shows the first {len(fitting)} of {len(rows)} episodes")
    html.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(html, fill_page(fitting))
    console.print(f"{len(fitting)} episodes written to {html}", soft_wrap=True, markup=False)
    return html


def render_page(rows: Sequence[Record]) -> str:
    """Returns the page of these records. It loads nothing from elsewhere."""
    return fill_page([encode_record(row) for row in rows])


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
    turns = [
        {
            "legal": turn["legal_actions"],
            "names": turn["names"],
            "action": turn["action"],
            "answer": turn["answer"],
            "probabilities": turn["probabilities"],
            "value": turn["value"],
        }
        for turn in row["turns"]
    ]
    found = _game_positions(row, allow_files) if _is_game(row) else _text_positions(row)
    opening = next((number for number, left in enumerate(found[1:]) if left["by"] != "chance"), 0)
    return {**{key: row.get(key) for key in known}, "turns": turns, "positions": found, "opening": opening}


def _is_game(row: Record) -> bool:
    history = row["history"]
    return row["env_type"] == GAME_KIND and isinstance(history, list)


def _text_positions(row: Record) -> list[dict[str, Any]]:
    """Returns the observations as positions: of a trace, or of a server that does not say the moves."""
    found = [
        {"text": turn["observation"], "board": None, "turn": number, **_describe_cause(row["turns"], number)}
        for number, turn in enumerate(row["turns"])
    ]
    last = {"text": row["final_observation"], "board": None, "turn": None}
    return [*found, {**last, **_describe_cause(row["turns"], len(found))}]


def _describe_cause(turns: Sequence[Mapping[str, Any]], number: int) -> dict[str, Any]:
    return {"by": "player", "move": turns[number - 1]["answer"]} if number else {"by": "", "move": ""}


def _game_positions(row: Record, allow_files: bool) -> list[dict[str, Any]]:
    """Returns the positions of a game, which is played again from its history."""
    found: list[dict[str, Any]] = []
    by = move = ""
    # An illegal action leaves its position: the turn show_record there is the last one.
    taken = [number for number, turn in enumerate(row["turns"]) if turn["action"] is not None]
    variant = variant_of(row, allow_files=allow_files)
    for state, moves in positions(variant, row["history"]):
        own = any(made.player == row["seat"] for made in moves)
        number = taken.pop(0) if own and taken else None
        if not moves and row["turns"] and row["turns"][-1]["action"] is None:
            number = len(row["turns"]) - 1  # the player gave the game up here
        text, drawn = show(variant, state), read_board(row["game"], str(state))
        found.append({"text": text, "board": drawn, "by": by, "move": move, "turn": number})
        by = " and ".join(dict.fromkeys(_name_player(row, made.player) for made in moves))
        move = ", ".join(made.name for made in moves)
    found[-1]["text"] += f"\n\n{row['final_observation']}"
    return found


def _name_player(row: Record, player: int) -> str:
    if player == CHANCE:
        return "chance"
    return "player" if player == row["seat"] else f"opponent (Player {player})"
