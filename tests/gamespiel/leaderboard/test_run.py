"""``gamespiel leaderboard``: budgets, stops, what is kept, and several at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gamespiel.cli import main
from gamespiel.errors import InvalidValueError
from gamespiel.leaderboard.board import BoardError
from gamespiel.leaderboard.journal import lock_board
from gamespiel.leaderboard.run import BoardOptions
from gamespiel.leaderboard.verification import inspect_board
from tests.gamespiel.leaderboard.boards import find_rows, forge, play, read, shrink
from tests.gamespiel.leaderboard.conftest import AGENTS


def test_a_board_is_the_same_however_often_it_was_stopped(board: Path, tmp_path: Path) -> None:
    path = tmp_path / "parts.json"
    seen = []
    for games in (1, 10, 10, None):
        data = play(path, *AGENTS, rounds=2, games=games)
        seen.append(sum(len(entry["episodes"]) for entry in data["agents"]))
    assert seen[0] == 1 and seen == sorted(set(seen))
    assert path.read_bytes() == board.read_bytes()
    assert not list(tmp_path.glob("*.journal"))
    grown = tmp_path / "grown.json"
    play(grown, "random")
    play(grown, *AGENTS)
    play(grown, *AGENTS, rounds=2)
    assert grown.read_bytes() == board.read_bytes()
    with pytest.raises(BoardError, match="has another 'first': agent is 'first' there, and 'random' here"):
        play(board, "first=random")


def test_a_gap_counts_for_nothing_after_it(board: Path) -> None:
    """The journal of processes may have a later deal and not an earlier one, and a line that a kill cut."""
    data = read(board)
    rows = [row for row in data["agents"][1]["episodes"] if row["deal"] == 1 and row["task"] == "goofspiel"]
    path = board.with_name("gap.json")
    play(path, "first", games=1)
    journal = path.with_name("gap.json.journal")
    head = {"deals": "fixed", "track": "masked"}
    lines = [head, {"unit": ["first", "goofspiel", 1], "rows": rows}]
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"unit":["first","go')
    found = play(path, "first", rounds=2, games=1)
    assert [row["task"] for row in found["agents"][0]["episodes"]] == ["trace/strings", "blackjack"]
    assert journal.exists()  # it is not lost either
    assert len(find_rows(play(path, "first", rounds=2), 0, "goofspiel")) == 8


def test_a_model_that_is_here_plays_and_its_choices_are_legal(small: None, tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    data = play(path, "tiny=model:tiny", "random")
    entry = data["agents"][0]
    assert entry["env_type"] == "openspiel" and entry["model"] == "tiny" and not entry["asking"]["rules"]
    assert {row["task"] for row in entry["episodes"]} == {"blackjack", "leduc_poker", "goofspiel"}
    assert all(0 < chance <= 1 for row in entry["episodes"] for chance in row["chances"])
    report = inspect_board(path)
    assert report.findings == [] and "is what the author says" in report.notes[0]
    assert data["results"]["games"]["agents"]["tiny"]["tasks_played"] == 3


def test_a_model_that_sees_no_list_is_asked_for_names(small: None, tmp_path: Path) -> None:
    path = tmp_path / "names.json"
    data = play(path, "tiny=model:tiny", "random", track="unlisted", games=8)
    asking = data["agents"][0]["asking"]  # the preset's own is "number", with the list
    assert asking["answer"] == "name" and asking["list_actions"] is False
    assert inspect_board(path).findings == []
    with pytest.raises(BoardError, match="is a board of --track unlisted, and --track unmasked was asked"):
        play(path, "random", track="unmasked")

    def show_list(data: dict[str, Any]) -> None:
        data["agents"][0]["asking"]["list_actions"] = True

    said = "asking: list_actions is True, and False on the track 'unlisted'"
    assert any(said in finding for finding in forge(path, show_list).findings)


def test_two_commands_do_not_play_one_board(tmp_path: Path, small: None) -> None:
    path = tmp_path / "one.json"
    with lock_board(path), pytest.raises(BoardError, match="another command plays the board"):
        play(path, "random", games=1)
    play(path, "random", games=1)


@pytest.mark.launch
def test_processes_play_what_one_plays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes have the whole benchmark, whose first two tasks are families of programs."""
    names = ("trace/arithmetic", "trace/strings")
    shrink(monkeypatch, names)
    alone, together = tmp_path / "alone.json", tmp_path / "together.json"
    play(alone, "random", "first")
    play(together, "random", "first", processes=2)
    assert alone.read_bytes() == together.read_bytes()


def test_options_out_of_range() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"path": Path("board.txt")}, "must end in .json or .json.gz, not 'board.txt'"),
        ({"rounds": 0}, "--rounds must be 1 … 10,000, not 0"),
        ({"seconds": float("nan")}, "--seconds must be above 0, not nan"),
        ({"games": 0}, "--games must be at least 1"),
        ({"processes": 1000}, "--processes must be 1 … 256"),
    ]
    for options, said in wrong:
        with pytest.raises(InvalidValueError, match=said):
            BoardOptions(**({"path": Path("board.json")} | options))


def test_the_command_plays_and_shows(
    small: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["leaderboard", "--board", "b.json", "--agents", "random", "first", "--html", "b.html"]) == 0
    assert "games, track masked, deals fixed" in " ".join(capsys.readouterr().out.split())
    before = Path("b.json").read_bytes()
    assert main(["leaderboard", "--board", "b.json"]) == 0  # only shown
    assert Path("b.json").read_bytes() == before and Path("b.html").exists()
    assert main(["leaderboard", "--board", "none.json"]) == 2
    assert main(["leaderboard", "--board", "b.json", "--agents", "random", "--html", "b.txt"]) == 2
