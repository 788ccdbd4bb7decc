"""The page of a board: it has everything, it loads nothing, and no text of a file becomes a script."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from gamespiel.errors import InvalidValueError
from gamespiel.leaderboard.page import make_record, render_tables, write_board_page
from gamespiel.replay.page import describe_record
from tests.gamespiel.leaderboard.boards import find_rows, read

EVIL = '</script><script>alert(1)</script><img src=x onerror="alert(2)">%DATA% %SCRIPT% \' " &'


class Reader(HTMLParser):
    """Collects elements, and the attributes by which a page could run or load something."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read_page(path: Path) -> tuple[Reader, list[dict[str, Any]]]:
    text = path.read_text(encoding="utf-8")
    reader = Reader()
    reader.feed(text)
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found
    return reader, json.loads(found[1])


def test_the_page_has_tables_and_games(board: Path, tmp_path: Path) -> None:
    data, html = read(board), tmp_path / "page.html"
    count = write_board_page(data, html)
    reader, games = read_page(html)
    assert count == len(games) == 62  # all of them
    assert {game["game"] for game in games} == {"trace/strings", "blackjack", "leduc_poker", "goofspiel"}
    text = "".join(reader.texts)
    assert data["sha256"] in text and "Deals won / tied / lost" in text and "Paired differences" in text
    score = data["results"]["games"]["agents"]["first"]["score"]
    assert f"{score:.3f} ±" in text
    assert "src" not in reader.attributes and not any(name.startswith("on") for name in reader.attributes)
    assert not re.search(r"(https?:)?//[a-z]", html.read_text().replace("http://www.w3.org", ""))
    with pytest.raises(InvalidValueError, match=r"--html must end in .html"):
        write_board_page(data, tmp_path / "page.txt")


def test_no_text_of_a_file_becomes_a_script(board: Path, tmp_path: Path) -> None:
    plain, forged = tmp_path / "plain.html", tmp_path / "forged.html"
    data = read(board)
    write_board_page(data, plain)
    changed = json.loads(json.dumps(data).replace('"random"', json.dumps(EVIL)))
    changed["deals"] = changed["track"] = EVIL
    changed["versions"] = {EVIL: EVIL}
    # Opponents by that name are not played again; only the tables have it.
    for entry, own in zip(changed["agents"], data["agents"], strict=True):
        entry["episodes"] = own["episodes"]
    write_board_page(changed, forged)
    expected, games = read_page(plain)
    found, shown = read_page(forged)
    assert sorted(found.tags) == sorted(expected.tags) and set(found.attributes) == set(expected.attributes)
    assert EVIL in "".join(found.texts) and len(shown) == len(games)
    assert any(game["player"] == EVIL for game in shown)
    assert "<img" not in render_tables(changed)


def test_replies_that_were_refused_are_turns_of_their_own(board: Path) -> None:
    row = find_rows(read(board), 1, "leduc_poker")[0]
    game = describe_record(make_record(row, "me", "masked"))
    own = [turn["action"] for turn in game["turns"]]
    assert game["score"] == row["score"] and own and set(own) <= {0, 1, 2}
    replies = ["no idea", *map(str, own)]
    told = describe_record(make_record({**row, "replies": replies}, "me", "unmasked"))
    assert [turn["action"] for turn in told["turns"]] == [None, *own]
    assert [turn["answer"] for turn in told["turns"]] == replies
