"""Records from strangers: each is replayed and exported, or refused with its line and the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gamespiel.cli import main
from gamespiel.errors import ConfigError
from gamespiel.records import read_records
from gamespiel.replay.export import export_turns
from gamespiel.replay.page import write_page
from task_gym.errors import TaskGymError
from tests.gamespiel.replay.games import record
from tests.gamespiel.runs import quiet


@pytest.fixture(scope="module")
def game() -> dict[str, Any]:
    return record([1], game="kuhn_poker", params={"players": 2})


def write(folder: Path, *rows: dict[str, Any] | bytes) -> Path:
    path = folder / "games.jsonl"
    path.write_bytes(b"".join((r if isinstance(r, bytes) else json.dumps(r).encode()) + b"\n" for r in rows))
    return path


HISTORIES: dict[str, tuple[list[Any], str]] = {
    "illegal": ([0, 1, 7], r"action 7 was given, legal: 0, 1, in 'kuhn_poker'"),
    "no chance": ([9], r"action 9 was given, legal: 0, 1, 2"),
    "too long": ([0, 1, 0, 0, 0, 0], "6 actions were given, and 'kuhn_poker' is over after 4"),
    "a fraction": ([0, 1.0], "action 1.0 was given, legal: 1, 2"),
    "true": ([True], "action True was given"),
    "huge": ([10**30], "action 1000000000000000000000000000000 was given"),
}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_that_the_game_does_not_have_is_named(
    name: str, game: dict[str, Any], tmp_path: Path
) -> None:
    history, message = HISTORIES[name]
    path = write(tmp_path, game, game | {"history": history})
    with pytest.raises(ConfigError, match=f"game 2 cannot be replayed: history: .*{message}"):
        write_page(path, tmp_path / "page.html", quiet())
    assert not (tmp_path / "page.html").exists()
    assert main(["replay", str(path), "--html", str(tmp_path / "page.html")]) == 2
    export_turns(path, tmp_path / "rows.jsonl", console=quiet())  # which plays nothing again


def test_a_history_that_ends_within_a_simultaneous_move_is_named(tmp_path: Path) -> None:
    row = record([0], game="matrix_rps", params={})
    assert write_page(write(tmp_path, row), tmp_path / "page.html", quiet())
    path = write(tmp_path, row | {"history": row["history"][:1]})
    with pytest.raises(ConfigError, match="it ends with 1 of the 2 actions of a move in 'matrix_rps'"):
        write_page(path, tmp_path / "page.html", quiet())


LINES: dict[str, tuple[Any, str]] = {
    "a list": (b"[]", "it: Input should be a valid dictionary"),
    "deep": (b"[" * 100_000, "its lists and objects are nested too deeply"),
    "no UTF-8": (b'{"a": "\xff"}', "'utf-8' codec can't decode"),
    "many digits": (b'{"a": ' + b"9" * 5000 + b"}", "Exceeds the limit"),
    "no turns": ({"turns": None}, "turns: Input should be a valid list"),
    "a turn without an answer": ({"turns": [{}]}, "turns.0.observation: Field required"),
    "a seat as text": ({"seat": "0"}, "seat: Input should be a valid integer"),
    "parameters as a list": ({"params": []}, "params: Input should be a valid dictionary"),
    "messages without roles": ({"conversation": [{}]}, "conversation.0.role: Field required"),
}


@pytest.mark.parametrize("name", LINES)
def test_a_line_of_another_shape_is_named(name: str, game: dict[str, Any], tmp_path: Path) -> None:
    given, message = LINES[name]
    path = write(tmp_path, game, given if isinstance(given, bytes) else game | given)
    with pytest.raises(ConfigError) as refused:
        read_records(path)
    assert "line 2 is no recorded game: " in str(refused.value) and message in str(refused.value)
    for call in (
        lambda: write_page(path, tmp_path / "page.html", quiet()),
        lambda: export_turns(path, tmp_path / "rows.jsonl", console=quiet()),
    ):
        with pytest.raises(TaskGymError, match="line 2 is no recorded game"):
            call()


def test_a_replay_opens_no_file_that_a_record_names(game: dict[str, Any], tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("root:x:0:0")
    other = {"task_id": None, "game": "efg_game", "params": {"filename": str(secret)}, "history": []}
    path = write(tmp_path, game | other)
    with pytest.raises(ConfigError, match=r"efg_game parameter 'filename': .* would open") as refused:
        write_page(path, tmp_path / "page.html", quiet())
    assert "root:x" not in str(refused.value)


def test_half_a_surrogate_pair_in_a_reply_is_shown_and_exported(game: dict[str, Any], tmp_path: Path) -> None:
    turns = [turn | {"answer": "\ud800"} for turn in game["turns"]]
    path = write(tmp_path, game | {"turns": turns})
    assert "\ud800" not in write_page(path, tmp_path / "page.html", quiet()).read_text(encoding="utf-8")
    rows = export_turns(path, tmp_path / "rows.jsonl", console=quiet()).read_text(encoding="utf-8")
    assert json.loads(rows.splitlines()[0])["messages"][1]["content"] == "?"
