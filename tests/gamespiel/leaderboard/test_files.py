"""The files of boards: whoever wrote them, a named error or the board."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gamespiel.leaderboard import board as files
from gamespiel.leaderboard.board import (
    BoardError,
    load_board,
    pack,
    parse_board,
    read_bytes,
    render,
    unpack,
    write_board,
)
from tests.gamespiel.leaderboard.boards import read


def edit(content: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    data = json.loads(content)
    change(data)
    return json.dumps(data).encode()


def replace(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda content: content.replace(old, new, 1)


def edit_episode(**changes: Any) -> Callable[[bytes], bytes]:
    return lambda content: edit(content, lambda data: data["agents"][0]["episodes"][0].update(changes))


STRANGE: list[tuple[Callable[[bytes], bytes], str]] = [
    (lambda content: b"", "is no board: Expecting value"),
    (lambda content: b"\x00\xff\xfe", "is no board: 'utf-8' codec"),
    (lambda content: b"[" * 100_000, "nested too deeply"),
    (lambda content: b'{"a":' * 50 + b"1" + b"}" * 50, "nested more than 16 deep"),
    (replace(b'"score":', b'"score":NaN,"x":'), "NaN is no number"),
    (replace(b'"score":', b'"score":1e999,"x":'), "is no board"),
    (replace(b'"score":', b'"score":0,"score":'), "has the name 'score' twice"),
    (replace(b'"rounds":2', b'"rounds":' + b"9" * 5000), "is no board"),
    (replace(b'"rounds":2', b'"rounds":99999999'), "rounds: "),
    (replace(b'"rounds":2', b'"rounds":true'), "rounds: "),
    (lambda content: edit(content, lambda data: data.update(more=1)), "more: "),
    (lambda content: edit(content, lambda data: data.update(agents=[3])), "an object with the names about"),
    (edit_episode(history="0"), "agents.0.episodes.0.history"),
    (edit_episode(history=[10**30]), "agents.0.episodes.0.history."),
    (lambda content: edit(content, lambda data: data.update(format="x")), "has the format 'x'"),
    (lambda content: edit(content, lambda data: data.update(benchmark="x")), "is of the benchmark 'x'"),
]


@pytest.mark.parametrize(("change", "said"), STRANGE)
def test_a_strangers_file_is_a_named_error(board: Path, change: Callable[[bytes], bytes], said: str) -> None:
    with pytest.raises(BoardError) as error:
        parse_board(change(board.read_bytes()), "FILE")
    assert said in str(error.value) and len(str(error.value)) < 1000


def test_a_board_that_is_too_large_is_not_read(board: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = board.read_bytes()
    packed = pack(content)
    monkeypatch.setattr(files, "LARGEST", len(content) - 1)
    with pytest.raises(BoardError, match="is the most of a board"):
        read_bytes(board)
    with pytest.raises(BoardError, match="unpacked, which is the most of a board"):
        unpack(packed, "FILE")


def test_a_packed_board_unpacks_with_gzip_and_no_byte_of_it_is_free(board: Path) -> None:
    """Every byte is of the head, of the stream or of the checksum and length at the end."""
    content = b"GameSpiel " * 40
    packed = pack(content)
    assert zlib.decompress(packed, 31) == content == unpack(packed, "FILE")
    for at in range(len(packed)):
        for flip in (1, 128):
            changed = packed[:at] + bytes([packed[at] ^ flip]) + packed[at + 1 :]
            try:
                found = unpack(changed, "FILE")
            except BoardError:
                continue
            assert found == content, at  # bits after the last block mean nothing
    for cut in (packed[:-1], packed + b"x", packed[:20], b""):
        with pytest.raises(BoardError):
            unpack(cut, "FILE")


def test_there_is_one_way_to_write_a_board(board: Path, tmp_path: Path) -> None:
    data = read(board)
    assert render(data) == board.read_bytes()
    packed = tmp_path / "board.json.gz"
    write_board(packed, {key: value for key, value in data.items() if key != "sha256"})
    assert read_bytes(packed) == board.read_bytes()
    assert json.loads(board.read_bytes())["rounds"] == 2  # it is JSON for everybody


def test_a_changed_board_is_not_gone_on_with(board: Path) -> None:
    board.write_bytes(board.read_bytes().replace(b'"rounds":2', b'"rounds":3'))
    with pytest.raises(BoardError, match="was changed after it was written: gamespiel verify says where"):
        load_board(board)
