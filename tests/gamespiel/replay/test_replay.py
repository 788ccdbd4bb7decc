"""Recorded games as a page that replays them, with pictures of positions, and as rows in chat format."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyspiel
import pytest

from gamespiel.cli import main
from gamespiel.measure.records import write_records
from gamespiel.replay.boards import read_board
from gamespiel.replay.page import HERE, describe_record, encode_record, fill_page
from tests.gamespiel.replay.games import record

Capsys = pytest.CaptureFixture[str]


def data_of(text: str) -> list[dict[str, Any]]:
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert match
    return list(json.loads(match[1]))


def test_every_move_is_a_position() -> None:
    # "first" takes 0 and 1; the player wins on the diagonal 4, 2, 6.
    game = describe_record(record([4, 2, 6], game="tic_tac_toe"))
    moves = [position["move"] for position in game["positions"]]
    assert moves == ["", "x(1,1)", "o(0,0)", "x(0,2)", "o(0,1)", "x(2,0)"]
    assert [position["turn"] for position in game["positions"]] == [0, None, 1, None, 2, None]
    assert [position["by"] for position in game["positions"]][:3] == ["", "player", "opponent (Player 1)"]
    assert game["positions"][-1]["board"]["rows"] == ["oox", ".x.", "x.."]
    assert game["result"] == "win" and "Result: win" in game["positions"][-1]["text"]
    game = describe_record(record([4, 4, 2, 6], game="tic_tac_toe"))  # the second 4 is illegal
    assert [position["turn"] for position in game["positions"]] == [0, None, 2, None, 3, None]
    given_up = describe_record(record([4, 4, 4, 4], game="tic_tac_toe"))
    assert [position["turn"] for position in given_up["positions"]] == [0, None, 3]


def test_a_replay_opens_when_the_cards_are_dealt() -> None:
    """Seed 0 deals two cards; OpenSpiel writes cards as numbers, and -10000 for one that is not dealt."""
    row = record([1, 1, 1, 1], seed=0, game="leduc_poker")
    game = describe_record(row)
    first, second = row["history"][:2]
    cards = [f"{'JQK'[card // 2]}{'♠♥'[card % 2]}" for card in (first, second)]
    assert [position["move"] for position in game["positions"][1:3]] == cards
    assert game["opening"] == 2 and game["positions"][2]["text"].splitlines()[:3] == [
        f"Player 0: {cards[0]}", f"Player 1: {cards[1]}", "Public card: none"
    ]  # fmt: skip
    assert "-10000" not in json.dumps(game)
    assert describe_record(record([4, 2, 6], game="tic_tac_toe"))["opening"] == 0
    simultaneous = describe_record(record([0], game="goofspiel", params={"num_cards": 8}))
    assert simultaneous["opening"] == 1 and simultaneous["positions"][1]["by"] == "chance"
    assert simultaneous["positions"][2]["by"] == "player and opponent (Player 1)"
    assert simultaneous["positions"][2]["move"] == "[P0]Bid: 1, [P1]Bid: 1"


def test_the_page_is_whole_and_no_text_escapes_its_data() -> None:
    row = record([4, 2, 6], game="tic_tac_toe")
    row["player"] = "</script><script>alert(1)</script> %SCRIPT% &"
    text = fill_page([encode_record(row), encode_record(record([], seed=1, game="leduc_poker"))])
    first, second = data_of(text)
    assert first["player"] == row["player"] and second["game"] == "leduc_poker"
    assert text.count("</script>") == 2 and "alert(1)</script>" not in text
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", text) and "@import" not in text
    names: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            attributes = dict(attrs)
            if tag in ("button", "input"):
                names.append(attributes["aria-label"] or "")

    Reader().feed(text)
    assert len(names) == 5 and all(names)  # each control says what it does


def test_traces_are_their_texts() -> None:
    turn = {"observation": "What does it print?", "legal_actions": [], "names": None, "action": None,
            "answer": "42", "probabilities": None, "value": 0.5, "reward": 1.0}  # fmt: skip
    row = {**record([], game="kuhn_poker"), "env_type": "trace", "game": "code_trace", "history": ["42"],
           "turns": [turn], "final_observation": "True output: 42"}  # fmt: skip
    texts = [(position["text"], position["move"]) for position in describe_record(row)["positions"]]
    assert texts == [("What does it print?", ""), ("True output: 42", "42")]


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    rows = [record([], seed=seed, game="kuhn_poker") for seed in range(3)]
    write_records(tmp_path / "games.jsonl", rows)
    out = tmp_path / "new" / "page.html"
    assert main(["replay", str(tmp_path), "--html", str(out)]) == 0
    assert "3 episodes written to" in " ".join(capsys.readouterr().out.split())
    assert [game["seed"] for game in data_of(out.read_text(encoding="utf-8"))] == [0, 1, 2]
    monkeypatch.setattr("gamespiel.replay.page.LARGEST", 1)
    assert main(["replay", str(tmp_path), "--html", str(out)]) == 0
    assert "shows the first 1 of 3 episodes" in " ".join(capsys.readouterr().out.split())
    assert len(data_of(out.read_text(encoding="utf-8"))) == 1
    monkeypatch.setattr("gamespiel.replay.page.LONGEST", 10)  # a position of kuhn poker has more
    for argv, message in (
        (["replay", str(tmp_path), "--html", str(out)], "game 1 cannot be replayed: its positions have more"),
        (["replay", str(tmp_path / "none.jsonl")], "no games in"),
        (["replay", str(tmp_path), "--html", "page.htm"], "--html must end in .html, not 'page.htm'"),
    ):
        assert main(argv) == 2
        assert message in capsys.readouterr().err


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_the_script() -> None:
    games = [
        describe_record(record([4, 2, 6], game="tic_tac_toe")),
        describe_record(record([], seed=1, game="kuhn_poker")),
    ]
    program = f"""
    const v = require({json.dumps(str(HERE / "viewer.js"))});
    const games = {json.dumps(games)};
    const boards = [games[0].positions[5].board, games[1].positions[2].board,
      {{kind: "hex", rows: ["x.", ".o"]}}, {{kind: "points", rows: ["x.", ".o"]}},
      {{kind: "numbers", rows: [[2, 0], [0, 4]]}}, {{kind: "grid", pieces: "chess", rows: ["kK"]}}, null];
    console.log(JSON.stringify({{
      drawn: boards.map(v.drawn), bars: v.bars(games[0].turns[0]), about: v.about(games[0]),
      none: v.bars(null), reply: v.bars({{legal: [], names: null, probabilities: null, answer: "<b>"}}),
      kuhn: v.chosen(games, {{game: "kuhn_poker", opponent: "", result: ""}}),
      nothing: v.chosen(games, {{game: "kuhn_poker", opponent: "mcts", result: ""}}),
      places: ["", "#e=1&m=1", "#e=9&m=99", "#e=x"].map((hash) => v.place(hash, games)),
    }}));
    """
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    output = json.loads(done.stdout)
    *svgs, nothing = output["drawn"]
    assert nothing == "" and all(svg.startswith("<svg viewBox=") and svg.endswith("</svg>") for svg in svgs)
    assert [svg.count("<circle") for svg in svgs] == [5, 0, 2, 2, 0, 0]  # three x and two o; cards have none
    assert svgs[2].count("<polygon") == 4 and svgs[5].count("♚") == 2 and svgs[4].count("<text") == 2
    # Nine cells, each with 1/9; the one that was taken is marked.
    assert output["bars"].count("11.1%") == 9 and output["bars"].count("→") == 1
    assert output["about"] == "me: tic_tac_toe against first, seat 0, seed 0: win, score 1.000"
    assert output["none"] == "" and "<b>" not in output["reply"]
    assert (output["kuhn"], output["nothing"]) == ([1], [])
    last = len(games[1]["positions"]) - 1
    assert output["places"] == [[0, 0], [1, 1], [1, last], [0, 0]]


# -- pictures of positions ---------------------------------------------------------------------------------


def start(game: str, actions: tuple[int, ...] = (), **params: Any) -> Any:
    state = pyspiel.load_game(game, params).new_initial_state()
    for action in actions:
        state.apply_action(action)
    return read_board(game, str(state))


def rows(board: Any) -> list[str]:
    return list(board["rows"])


def test_squares_are_read() -> None:
    assert start("tic_tac_toe", (4, 0)) == {"kind": "grid", "rows": ["o..", ".x.", "..."]}
    assert rows(start("connect_four", (3,))) == ["......."] * 5 + ["...x..."]
    # Black has d5 and e4 in the beginning, White d4 and e5.
    middle = ["........"] * 3 + ["...ox...", "...xo..."] + ["........"] * 3
    assert rows(start("othello")) == middle
    # The first player of clobber and of amazons has "o" in OpenSpiel's text, and moves a3 to b3.
    assert rows(start("clobber", (1,), rows=3, columns=4)) == [".xxo", "oxox", "xoxo"]
    assert rows(start("breakthrough"))[0] == "x" * 8 and rows(start("breakthrough"))[-1] == "o" * 8
    # A row's label is one sign, a digit up to the ninth.
    assert rows(start("breakthrough", rows=11, columns=3)) == ["xxx"] * 2 + ["..."] * 7 + ["ooo"] * 2
    amazons = rows(start("amazons", board_size=6))
    assert (amazons[0], amazons[5]) == (".x..x.", ".o..o.")


def test_chess_and_checkers() -> None:
    chess = start("chess")
    assert chess["pieces"] == "chess"
    assert rows(chess) == ["rnbqkbnr", "pppppppp", *["........"] * 4, "PPPPPPPP", "RNBQKBNR"]
    checkers = rows(start("checkers"))
    assert checkers[0] == ".o.o.o.o" and checkers[-1] == "x.x.x.x." and len(checkers) == 8
    kings = read_board(
        "checkers", "8.8.+....\n" + "".join(f"{row}........\n" for row in range(7, 0, -1)) + " abcdefgh"
    )
    assert rows(kings)[0] == ".X.o...."


def test_stones_are_read() -> None:
    points = [".....", ".....", "..x..", ".....", "....."]
    assert start("go", (12,), board_size=5) == {"kind": "points", "rows": points}
    assert start("hex", (0, 4), board_size=3) == {"kind": "hex", "rows": ["x..", ".o.", "..."]}


def test_numbers_are_read() -> None:
    board = read_board(
        "2048", "    2    4    0    0\n    0    0    0    0\n    8    0    0    0\n    0    0    0 2048\n"
    )
    assert board == {"kind": "numbers", "rows": [[2, 4, 0, 0], [0, 0, 0, 0], [8, 0, 0, 0], [0, 0, 0, 2048]]}


def test_cards_are_read() -> None:
    # Leduc's cards are numbered by rank, two suits each. Player 0 has Q♥, Player 1 K♠.
    dealt = start("leduc_poker", (3, 4))
    assert dealt["groups"] == [["Player 0", ["Q♥"]], ["public", ["?"]], ["Player 1", ["K♠"]]]
    assert dealt["note"] == "pot 2"
    assert start("kuhn_poker", (2, 0))["groups"] == [["Player 0", ["K"]], ["Player 1", ["J"]]]
    hand = read_board("blackjack", "Player 0: Cards: C9 HT\nDealer: Cards: SA ??")
    assert hand is not None and hand["groups"] == [["Player 0", ["9♣", "10♥"]], ["Dealer", ["A♠", "?"]]]
    assert read_board("bridge", "anything") is None and read_board("leduc_poker", "three players") is None


# -- rows in chat format -----------------------------------------------------------------------------------


def test_a_row_per_legal_turn(tmp_path: Path, capsys: Capsys) -> None:
    won = record([4, 4, 2, 6], game="tic_tac_toe")  # the second 4 is illegal
    lost = record([4, 4, 4, 4], game="tic_tac_toe")  # given up
    games, out = write_records(tmp_path / "games.jsonl", [won, lost]), tmp_path / "rows.jsonl"
    assert main(["export", str(games), "--output", str(out)]) == 0
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [row["messages"][1]["content"] for row in rows] == ["4", "2", "6", "4"]
    assert [row["turn"] for row in rows] == [0, 2, 3, 0]
    assert rows[0]["messages"][0] == {"role": "user", "content": won["turns"][0]["observation"]}
    assert rows[0]["result"] == "win" and rows[-1]["result"] == "loss"
    assert main(["export", str(games), "--output", str(out), "--result", "loss"]) == 0
    assert len(out.read_text(encoding="utf-8").splitlines()) == 1
