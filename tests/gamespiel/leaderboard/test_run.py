"""``gamespiel leaderboard``: budgets, stops, what is kept, and several at once."""

from __future__ import annotations

import json
import multiprocessing
import signal
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gamespiel.cli import main
from gamespiel.errors import InvalidValueError
from gamespiel.leaderboard import players, run
from gamespiel.leaderboard.board import BoardError, Unit
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


def test_a_kill_loses_only_the_deal_under_way(
    board: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "killed.json"
    plays, calls = players.BaselinePlayer.play, []

    def stop(self: Any, hands: Any) -> Any:
        calls.append(1)
        if len(calls) == 6:
            raise MemoryError  # of which nothing here knows
        return plays(self, hands)

    with monkeypatch.context() as patch:
        patch.setattr(players.BaselinePlayer, "play", stop)
        patch.setattr("gamespiel.leaderboard.run.write_board", lambda path, data: data)
        patch.setattr("gamespiel.leaderboard.run._close_journal", lambda board, journal: None)
        with pytest.raises(MemoryError):
            play(path, *AGENTS, rounds=2)
    (journal,) = tmp_path.glob("*.journal")
    assert sum("unit" in json.loads(line) for line in journal.read_text().splitlines()) == 5
    journal.write_bytes(journal.read_bytes() + b'{"unit":["random","go')  # cut by the kill
    play(path, *AGENTS, rounds=2)
    assert path.read_bytes() == board.read_bytes() and not journal.exists()


def test_agents_and_rounds_can_be_added(board: Path, tmp_path: Path) -> None:
    path = tmp_path / "more.json"
    play(path, "random")
    play(path, *AGENTS)
    play(path, *AGENTS, rounds=2)
    assert path.read_bytes() == board.read_bytes()


def test_a_gap_counts_for_nothing_after_it(board: Path) -> None:
    """The journal of processes may have a later deal and not an earlier one."""
    data = read(board)
    rows = [row for row in data["agents"][1]["episodes"] if row["deal"] == 1 and row["task"] == "goofspiel"]
    path = board.with_name("gap.json")
    play(path, "first", games=1)
    journal = path.with_name("gap.json.journal")
    head = {"deals": "fixed", "track": "masked"}
    lines = [head, {"unit": ["first", "goofspiel", 1], "rows": rows}]
    journal.write_text("".join(json.dumps(line) + "\n" for line in lines))
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


def test_a_model_that_writes_is_on_a_track_of_its_own(small: None, tmp_path: Path) -> None:
    path = tmp_path / "writes.json"
    data = play(path, "tiny=model:tiny", track="unmasked", games=8)
    rows = find_rows(data, 0, "leduc_poker")
    assert len(rows) == 6 and all(row["replies"] for row in rows)
    assert inspect_board(path).findings == []
    with pytest.raises(BoardError, match="is a board of --track unmasked, and --track masked was asked"):
        play(path, "random")


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


def test_an_agent_that_changed_is_another_one(board: Path) -> None:
    with pytest.raises(
        BoardError, match="the board has another 'first': agent is 'first' there, and 'random' here"
    ):
        play(board, "first=random")


@pytest.mark.slow
def test_processes_play_what_one_plays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes have the whole benchmark, whose first two tasks are families of programs."""
    names = ("trace/arithmetic", "trace/strings")
    shrink(monkeypatch, names)
    alone, together = tmp_path / "alone.json", tmp_path / "together.json"
    play(alone, "random", "first")
    play(together, "random", "first", processes=2)
    assert alone.read_bytes() == together.read_bytes()


def play_for_long(unit: Unit, deals: str) -> list[Any]:
    time.sleep(0 if unit[2] == 0 else 200)
    return []


def test_a_stop_ends_the_deals_under_way_in_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or Python would wait for them at its end, however long they take."""
    forking = multiprocessing.get_context("fork")  # a new process would have to import everything
    monkeypatch.setattr(run, "_play_unit", play_for_long)
    monkeypatch.setattr(run, "ProcessPoolExecutor", lambda count, *_: ProcessPoolExecutor(count, forking))
    before = set(multiprocessing.active_children())
    units = iter([("random", "leduc_poker", number) for number in range(9)])
    played = run._play_there(units, BoardOptions(tmp_path / "board.json", ("random",), processes=1))
    assert next(played) == (("random", "leduc_poker", 0), [])
    (process,) = set(multiprocessing.active_children()) - before
    played.close()  # type: ignore[attr-defined]
    process.join(60)
    assert process.exitcode == -signal.SIGTERM


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"path": Path("board.txt")}, "must end in .json or .json.gz, not 'board.txt'"),
        ({"rounds": 0}, "--rounds must be 1 … 10,000, not 0"),
        ({"seconds": float("nan")}, "--seconds must be above 0, not nan"),
        ({"games": 0}, "--games must be at least 1"),
        ({"processes": 1000}, "--processes must be 1 … 256"),
    ],
)
def test_options_out_of_range(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        BoardOptions(**({"path": Path("board.json")} | options))


def test_the_command_plays_and_shows(
    small: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["leaderboard", "--board", "b.json", "--agents", "random", "first", "--html", "b.html"]) == 0
    assert "games, track masked, deals fixed" in capsys.readouterr().out
    before = Path("b.json").read_bytes()
    assert main(["leaderboard", "--board", "b.json"]) == 0  # only shown
    assert Path("b.json").read_bytes() == before and Path("b.html").exists()
    assert main(["leaderboard", "--board", "none.json"]) == 2
    assert main(["leaderboard", "--board", "b.json", "--agents", "random", "--html", "b.txt"]) == 2
