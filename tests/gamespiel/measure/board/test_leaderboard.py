"""``gamespiel leaderboard``: the deals, who enters where, budgets, stops, what is kept, and the page."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from game_gym.exact import list_regrets
from game_gym.games import TABLE
from gamespiel.cli import main
from gamespiel.errors import InvalidValueError
from gamespiel.measure.board import benchmark
from gamespiel.measure.board.agents import (
    describe,
    explain_entry,
    find_wrong_name,
    list_tasks,
    read_agents,
)
from gamespiel.measure.board.benchmark import (
    ANCHORS,
    GAMES,
    MEETING_GAMES,
    SCALES,
    TASK_NAMES,
    DealSet,
    explain_refusal,
    list_anchors,
    load_task,
    parse_deals,
    resolve_opponent,
)
from gamespiel.measure.board.file import BoardError, digest_episodes, load_board, lock_board, write_board
from gamespiel.measure.board.results import summarize
from gamespiel.measure.board.run import BoardOptions
from gamespiel.measure.board.table import describe_agent, format_rating, list_labels, print_board
from gamespiel.measure.board.verification import inspect_board
from gamespiel.replay.board_page import make_record, render_tables, write_board_page
from gamespiel.replay.page import describe_record
from gamespiel.report.console import make_console
from gamespiel.tracks import MASKED
from tests.gamespiel.measure.board.conftest import AGENTS, LATER, find_rows, forge, play, read, shrink
from trace_gym.programs.builtin import split

SEEDS = {"leduc_poker": 3738917040, "chess": 3188123317, "trace/strings": 3945051130}
"""The first 8 bytes of SHA-256 of "gamespiel-1/fixed/deal/TASK/0", modulo 2**32 - 200."""


def test_deals_follow_from_their_name_by_sha_256_and_never_change() -> None:
    assert {task: DealSet().list_matches(task, 0)[0].seed for task in SEEDS} == SEEDS
    assert sorted(GAMES) == sorted(TABLE) and len(TASK_NAMES) == 22 + 16
    for name in ("fixed", LATER):
        digest = sha256(f"gamespiel-1/{name}/deal/leduc_poker/0".encode()).digest()
        match = DealSet(name).list_matches("leduc_poker", 0)[0]
        assert match.seed == int.from_bytes(digest[:8], "big") % (2**32 - 200)
        # leduc_poker has index 2 in the table.
        assert match.task_id == 200_000_000 + int.from_bytes(digest[8:16], "big") % 100_000_000
        # Levels are drawn too. In turn, a mean over deals would be another one after each.
        digest = sha256(f"gamespiel-1/{name}/deal/trace/strings/4".encode()).digest()
        task = split(DealSet(name).list_matches("trace/strings", 4)[0].task_id)
        assert task == ("strings", 1 + int.from_bytes(digest[16:24], "big") % 10)


def test_every_seat_meets_every_anchor_on_the_same_deal() -> None:
    matches = DealSet().list_matches("hearts", 3)
    assert len(matches) == 12 and {match.seat for match in matches} == {0, 1, 2, 3}
    assert len({match.opponent for match in matches}) == 3
    assert len({(match.seed, match.task_id) for match in matches}) == 1
    assert [match.opponent for match in DealSet().list_matches("goofspiel", 0)] == ["random"] * 2 + [
        "first"
    ] * 2
    assert [match.opponent for match in DealSet().list_matches("2048", 0)] == ["none"]


def test_a_part_of_a_budget_is_that_part_of_its_rollouts() -> None:
    """othello has 1000 x 20: a hundredth are 200 rollouts. liars_dice has 3000 x 200: 6,000 are 3000 x 2."""
    othello, dice = (
        load_task(DealSet().list_matches(game, 0)[0].task_id).variant for game in ("othello", "liars_dice")
    )
    assert resolve_opponent("mcts/100", othello) == "mcts:200x1"
    assert resolve_opponent("mcts/100", dice) == "mcts:3000x2"
    assert resolve_opponent("mcts/1000000", othello) == "mcts:2x1"
    assert resolve_opponent("mcts:7x2", othello) == "mcts:7x2"
    assert resolve_opponent("random", dice) == "random"


def test_searches_enter_what_they_can_play() -> None:
    for game in ("goofspiel", "2048", "solitaire", "trace/strings"):
        assert explain_refusal("mcts/100", game)
    assert "moves are simultaneous" in explain_refusal("mcts:5", "goofspiel")
    assert "more than 0.3 s" in explain_refusal("mcts", "chess")
    assert not explain_refusal("mcts", "leduc_poker")
    entry = describe(read_agents(["ismcts/100"], MASKED)[0], MASKED)
    assert list_tasks(entry, MASKED) == ["leduc_poker", "hearts", "gin_rummy"]


def test_deals_have_a_date_and_a_hash() -> None:
    assert parse_deals(LATER).name == LATER
    wrong = ("", "Fixed", "2026-12-24", "2026-12-24:xyz", "2026-02-30:" + "0" * 64, "2026-12-24:" + "A" * 64)
    for text in wrong:
        with pytest.raises(InvalidValueError, match="allowed: fixed, or DATE:HASH"):
            parse_deals(text)


@pytest.mark.parametrize(
    ("names", "track", "said"),
    [
        (["randm"], "masked", "no such run, and no such agent.*did you mean 'random'"),
        (["random", "random"], "masked", "has 'random' twice"),
        (["One=random", "one=first"], "masked", "has the names 'One' and 'one'"),
        (
            ["openai:\u043c@http://127.0.0.1:1/v1"],
            "unmasked",
            r"the name 'openai:.u043c@.*, allowed: printable",
        ),
        (["openai:m@http://127.0.0.1:1/v1"], "masked", "writes replies"),
        (
            ["openai:a = b@http://127.0.0.1:1/v1"],
            "unmasked",
            "has the name 'openai:a = b.*ASCII, no ' = '",
        ),
        (
            ["m=openai:a  b@http://127.0.0.1:1/v1"],
            "unmasked",
            "'m': agent 'openai:a  b.*no two spaces in a row",
        ),
        (["model:tyni"], "masked", "did you mean 'tiny'"),
    ],
)
def test_agents_that_are_none(names: list[str], track: str, said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        read_agents(names, track)


MODEL = {"track": MASKED, "env_type": "trace", "model": "tiny"} | {
    "asking": {"answer": "name", "decode": "choice", "think": False}
}
CHECKPOINT = MODEL | {"kind": "checkpoint", "checkpoint": "step-1", "sha256": "0"}
ENDPOINT = {"kind": "endpoint", "track": "unmasked"}


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"kind": "baseline", "track": None, "agent": "mcts/10"}, ""),
        (
            {"kind": "baseline", "track": None, "agent": "model:tiny"},
            "is no baseline, allowed: random, first and",
        ),
        (MODEL | {"kind": "model", "agent": "model:later_2.5-1b"}, ""),
        (MODEL | {"kind": "model", "agent": "mcts"}, "agent 'mcts' is no model, allowed: model:PRESET"),
        (MODEL | {"kind": "model", "agent": "model:a b"}, "is no model"),
        (MODEL | {"kind": "model", "agent": "openai:gpt-5@https://h/v1"}, "is no model"),
        (CHECKPOINT | {"agent": "runs/tiny"}, ""),
        (CHECKPOINT | {"agent": "ismcts:50x2"}, "is no checkpoint, allowed: the place of a run"),
        (CHECKPOINT | {"agent": "first"}, "is no checkpoint"),
        (CHECKPOINT | {"agent": "model:tiny"}, "is no checkpoint"),
        (CHECKPOINT | {"agent": "openai:gpt-5@https://h/v1"}, "is no checkpoint"),
        (ENDPOINT | {"agent": "openai:gpt-5@https://h/v1"}, ""),
        (ENDPOINT | {"agent": "gpt-5@https://h/v1"}, "is no endpoint, allowed: openai:MODEL@URL"),
        (ENDPOINT | {"agent": "openai:gpt-5"}, "is no endpoint"),
        (
            CHECKPOINT | {"agent": "runs/\u202etiny"},
            r"agent 'runs/\u202etiny', allowed: printable characters",
        ),
        (CHECKPOINT | {"agent": "runs/a", "model": "a\u200b"}, r"model 'a\u200b', allowed: printable"),
        (CHECKPOINT | {"agent": "runs/a", "checkpoint": "a\nb"}, r"checkpoint 'a\nb', allowed: printable"),
        (CHECKPOINT | {"agent": "runs/a = mcts"}, "allowed: no ' = '"),
        (CHECKPOINT | {"agent": "runs/a vs mcts"}, "no ' vs '"),
        (CHECKPOINT | {"agent": "runs/a  mcts"}, "no two spaces in a row"),
        (
            CHECKPOINT | {"agent": "runs/a", "name": "my policy"},
            "the name 'my policy', allowed: 'runs/a', or 1 to",
        ),
        (CHECKPOINT | {"agent": "my runs/a", "name": "my runs/a"}, ""),
    ],
)
def test_no_agent_of_a_file_passes_for_another(
    about: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "wrong\n")  # makes no file wrong
    found = explain_entry({"name": "x"} | about, about["track"] or MASKED)
    assert said in found and bool(said) == bool(found)


def test_names_of_a_board_have_spaces_only_between_words() -> None:
    assert find_wrong_name(["a", "my runs/b", "a vs my runs/b"]) == ""
    for name in (" ", " a", "a ", "a  b", "gpt-5 = openai:gpt-5@https://h/v1"):
        assert find_wrong_name(["a", name]).startswith(
            f"the name {name!r}, allowed: printable ASCII, no ' = '"
        )


# -- boards that are played --------------------------------------------------------------------------------


@pytest.mark.trains
@pytest.mark.sample
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
    gap_board = play(path, "first", rounds=2, games=1)
    assert [row["task"] for row in gap_board["agents"][0]["episodes"]] == ["trace/strings", "blackjack"]
    assert journal.exists()  # it is not lost either
    assert len(find_rows(play(path, "first", rounds=2), 0, "goofspiel")) == 8


@pytest.mark.trains
@pytest.mark.sample
def test_a_model_that_is_here_plays_and_its_choices_are_legal(model_board: Path) -> None:
    data = read(model_board)
    entry = data["agents"][0]
    assert entry["env_type"] == "openspiel" and entry["model"] == "tiny" and not entry["asking"]["rules"]
    assert {row["task"] for row in entry["episodes"]} == {"blackjack", "leduc_poker", "goofspiel"}
    assert all(0 < chance <= 1 for row in entry["episodes"] for chance in row["chances"])
    report = inspect_board(model_board)
    assert report.findings == [] and "is what the author says" in report.notes[0]
    assert data["results"]["games"]["agents"]["tiny"]["tasks_played"] == 3


@pytest.mark.trains
@pytest.mark.sample
def test_a_model_plays_its_deals_again(
    model_board: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who draws other noise, and keeps what went well, has legal moves of the right probabilities."""
    path, again = model_board, ["--replay_models", "tiny=model:tiny", "--share", "1"]
    assert main(["verify", str(path), *again, "--seed", "5"]) == 0
    # One of three deals is 5%, rounded up, and all are drawn.
    assert "3 of 3 deals are played again, drawn by seed 5; if 1 are forged" in capsys.readouterr().out
    report = forge(path, lambda data: data["agents"][0]["episodes"][0]["chances"].__setitem__(0, 0.9))
    assert report.findings == []
    assert main(["verify", str(path.with_name("forged.json")), *again]) == 2
    assert "probabilities of its choices: [0.9" in capsys.readouterr().out
    assert main(["verify", str(path), *again[:2], "--share", "0"]) == 2
    assert "--share must be above 0 and at most 1, not 0" in capsys.readouterr().err
    path.with_name("cut.json").write_bytes(path.read_bytes().replace(b"\n", b"\n\n", 1))
    assert main(["verify", str(path.with_name("cut.json")), *again]) == 2
    assert "no model played its deals again" in capsys.readouterr().out
    draw_seed = DealSet.draw_seed

    def draw_other_noise(self: DealSet, stream: str, *address: object) -> int:
        return 1 if stream == "noise" else draw_seed(self, stream, *address)

    with monkeypatch.context() as patch:
        patch.setattr(DealSet, "draw_seed", draw_other_noise)
        play(tmp_path / "drawn.json", "tiny=model:tiny")
    assert inspect_board(tmp_path / "drawn.json").findings == []
    assert main(["verify", str(tmp_path / "drawn.json"), *again]) == 2
    assert "on the board, and" in capsys.readouterr().out
    others = {
        "tiny=model:smollm2-135m": "'tiny': model is 'tiny' on the board, and 'HuggingFaceTB/SmolLM2",
        "tine=model:tiny": "the board has 'tiny'; allowed: NAME=AGENT; did you mean 'tiny'?",
        "tiny=first": "'first' is no model that is here",
    }
    for entry, said in others.items():
        assert main(["verify", str(path), "--quick", "--replay_models", entry]) == 2
        assert said in "".join(capsys.readouterr())


@pytest.mark.trains
@pytest.mark.sample
def test_a_model_that_sees_no_list_is_asked_for_names(small: None, tmp_path: Path) -> None:
    path = tmp_path / "names.json"
    data = play(path, "tiny=model:tiny", "random", track="unlisted", games=8)
    asking = data["agents"][0]["asking"]  # the preset's own is "number", with the list
    assert asking["answer"] == "name" and asking["list_actions"] is False
    assert inspect_board(path).findings == []
    with pytest.raises(BoardError, match="is a board of --track unlisted, and --track unmasked was asked"):
        play(path, "random", track="unmasked")
    report = forge(path, lambda data: data["agents"][0]["asking"].update(list_actions=True), results=False)
    said = "asking: list_actions is True, and False on the track 'unlisted'"
    assert any(said in finding for finding in report.findings)


def test_two_commands_do_not_play_one_board(tmp_path: Path, small: None) -> None:
    path = tmp_path / "one.json"
    with lock_board(path), pytest.raises(BoardError, match="another command plays the board"):
        play(path, "random", games=1)
    play(path, "random", games=1)


@pytest.mark.launch
def test_processes_play_what_one_plays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The processes have the whole benchmark and its anchors, and play what they are asked for."""
    shrink(monkeypatch, ("trace/strings", "leduc_poker"))
    monkeypatch.setattr(benchmark, "ANCHORS", ANCHORS)
    alone, together = tmp_path / "alone.json", tmp_path / "together.json"
    play(alone, "random", "first", meetings=True)
    play(together, "random", "first", meetings=True, processes=2)
    assert alone.read_bytes() == together.read_bytes()
    assert inspect_board(together, processes=2).findings == []


def test_board_options_out_of_range() -> None:
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


@pytest.mark.usefixtures("small", "here")
def test_the_command_plays_and_shows(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["leaderboard", "--board", "b.json", "--agents", "random", "first", "--html", "b.html"]) == 0
    assert "games, track masked, deals fixed" in " ".join(capsys.readouterr().out.split())
    before = Path("b.json").read_bytes()
    assert main(["leaderboard", "--board", "b.json"]) == 0  # only shown
    assert main(["leaderboard", "--board", "none.json"]) == 2
    for words in (["first=1"], ["first=1:2"], ["first=1:2", "--agents", "random", "--rounds", "2"]):
        assert main(["leaderboard", "--board", "b.json", "--prices", *words]) == 2  # nothing is played
    assert Path("b.json").read_bytes() == before and Path("b.html").exists()
    assert main(["leaderboard", "--board", "b.json", "--agents", "random", "--html", "b.txt"]) == 2


def test_the_page_is_written_though_nobody_reads_the_tables(
    board: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as output, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", output)
        assert main(["leaderboard", "--board", str(board), "--html", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").exists()


def test_agents_meet_on_the_deals_of_the_board(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``first`` against itself plays one game from both seats, so that each deal's mean is a half."""
    path, parts, agents = (
        tmp_path / "board.json",
        tmp_path / "parts.json",
        ["one=first", "two=first", "mcts:4"],
    )
    data = play(path, *agents, meetings=True, rounds=2)
    met = {entry["name"]: entry["episodes"] for entry in data["agents"][3:]}
    # Two deals of leduc_poker from two seats, and of goofspiel, which the search does not enter.
    counts = {name: len(rows) for name, rows in met.items()}
    assert counts == {"one vs two": 8, "one vs mcts:4": 4, "two vs mcts:4": 4}
    addresses = [
        {(row["deal"], row["seed"], row["task_id"]) for row in rows if row["task"] == "leduc_poker"}
        for rows in (data["agents"][0]["episodes"], met["one vs two"])
    ]
    assert len(addresses[0]) == 2 and addresses[0] == addresses[1]
    meetings = data["results"]["games"]["meetings"]
    scores = {name: pair["score"] for name, pair in meetings["pairs"].items()}
    assert scores["one vs two"] == 0.5 and scores["one vs mcts:4"] == scores["two vs mcts:4"]
    games = {name: rating["games"] for name, rating in meetings["ratings"].items()}
    assert games == {"one": 2, "two": 2, "mcts:4": 1}
    tables = render_tables(data, {})
    # Two deals with faults are more than one and than 5%. In leduc_poker seat 0 is to move after two cards,
    # and has lost. In goofspiel both are to move at once: a half each, as before.
    for seat, lost in ((0, 0.0), (1, 1.0)):
        broken, others = load_board(path), []
        for unit in broken.list_counted("one vs two"):
            for row in broken.played[unit]:
                fault: dict[str, Any] = {"score": None, "result": "fault", "returns": None}
                if unit[1] == "goofspiel":
                    row |= fault | {"history": []}
                elif row["seat"] == seat:
                    row |= fault | {"history": row["history"][:2]}
                else:
                    others.append(row["score"])
        pair = summarize(broken)["games"]["meetings"]["pairs"]["one vs two"]
        assert pair["score"] == pytest.approx(((lost + sum(others) / 2) / 2 + 0.5) / 2)
        assert (pair["faults"], pair["deals"], len(others)) == (6, 4, 2)
    assert "<td>one = first\nvs two = first</td>" in tables and "<td>one = first\n- mcts:4</td>" in tables
    for most in (1, 37, None):
        play(parts, *agents, meetings=True, rounds=2, games=most)
        assert inspect_board(parts).findings == []
    assert parts.read_bytes() == path.read_bytes()
    with pytest.raises(BoardError, match="the names 'one' and 'One'"):
        play(path, "One=first")
    monkeypatch.setattr("gamespiel.measure.board.file.MOST_AGENTS", 6)
    with pytest.raises(BoardError, match="would have 7 agents and meetings, allowed: 6"):
        play(path, *agents, "random")
    assert not list(tmp_path.glob("*.journal"))  # who was refused leaves nothing


def test_deals_of_another_version_are_not_gone_on_with(board: Path) -> None:
    data = read(board)
    for row in find_rows(data, 0, "leduc_poker")[:6]:  # the first deal, against three anchors
        row["task_id"] += 1
    data["agents"][0]["episodes_sha256"] = digest_episodes("random", data["agents"][0]["episodes"])
    write_board(board, data)
    with pytest.raises(
        BoardError, match=r"'random', leduc_poker, deal 0, .*: task_id is \d+, and the deal has"
    ):
        play(board, "random", rounds=3)


def test_ratings_do_not_move_with_who_else_is_there(board: Path) -> None:
    alone = load_board(board)
    crowd = load_board(board)
    for number in range(20):
        crowd.entries[f"twin{number}"] = {**alone.entries["first"], "name": f"twin{number}"}
        crowd.played |= {
            (f"twin{number}", *unit[1:]): rows for unit, rows in alone.played.items() if unit[0] == "first"
        }
    parts = [summarize(one)["games"] for one in (alone, crowd)]
    few, many = (part["agents"] for part in parts)
    assert {name: many[name]["rating"] for name in AGENTS} == {name: few[name]["rating"] for name in AGENTS}
    assert few["mcts:4"]["rating"]["games"] == 1 and many["twin19"]["rating"]["games"] == 2
    assert summarize(alone)["traces"]["agents"]["first"]["rating"] is None  # where nobody plays against it
    # Nor do differences, which were right together with all that were read before.
    early, late = (part["differences"] for part in parts)
    assert len(early) == 3 and all(one in late for one in early)


def test_faults_above_a_small_share_are_losses(board: Path) -> None:
    """``first`` has eight deals: one may be left out, two are more than one and than 5%."""
    counts, left_out = [], []
    for count in (1, 2):
        data = load_board(board)
        for unit in data.list_counted("first")[-count:]:
            data.played[unit][0] |= {"score": None, "result": "fault"}
        part = summarize(data)["games"]
        rows = part["agents"]["first"]["tasks"]
        counts.append([(rows[task]["deals"], rows[task]["faults"]) for task in ("leduc_poker", "goofspiel")])
        left_out.append([row["faults"] for row in part["differences"]])
    assert counts == [[(2, 0), (1, 1)], [(2, 1), (2, 1)]]
    assert left_out == [[1, 0, 0], [0, 0, 0]]  # the search does not enter goofspiel


def test_moves_are_compared_with_the_best_ones(board: Path) -> None:
    data = read(board)
    for number, name in enumerate(AGENTS):
        rows = [row for row in find_rows(data, number, "leduc_poker") if row["opponent"] == "random"]
        variant = load_task(rows[0]["task_id"]).variant
        losses = [loss for row in rows for loss in list_regrets(variant, row["history"], row["seat"])]
        regret = data["results"]["games"]["agents"][name]["regret"]
        assert regret == {"mean": pytest.approx(sum(losses) / len(losses)), "moves": len(losses)}


def test_tables_show_what_plays_under_a_name(board: Path, tmp_path: Path) -> None:
    data, html = read(board), tmp_path / "page.html"
    data["agents"][0] |= {"name": "gpt-9", "agent": "random"}
    data["agents"][2]["kind"] = "checkpoint"
    labels = ["gpt-9 = random", "first", "mcts:4 (checkpoint)"]
    assert list(list_labels(data).values()) == labels
    for part in data["results"].values():
        part["agents"]["gpt-9"] = part["agents"].pop("random")
        for row in part["differences"]:
            row |= {"first": "gpt-9"} if row["first"] == "random" else {}
    write_board_page(data, html, {})
    reader, games = read_page(html)
    assert {game["player"] for game in games} == set(labels)
    # Games and traces each have scores, scores by task and scores against each opponent, and two pairs of it.
    assert reader.texts.count("gpt-9 = random") == 2 * 3 and "gpt-9" not in reader.texts
    assert reader.texts.count("gpt-9 = random\n- mcts:4 (checkpoint)") == 1  # a search enters no traces


def make_board(*differences: dict[str, Any], **part: Any) -> dict[str, Any]:
    """Returns what tables show of a board: three agents, of which the first two met, and results of games."""
    agents = [
        {"name": "talk", "agent": "openai:gpt-5@https://api.openai.com/v1", "kind": "endpoint"},
        {"name": "random", "agent": "random", "kind": "baseline"},
        {"name": "own", "agent": "runs/tiny", "kind": "checkpoint"},
        {"name": "talk vs random", "agent": "talk", "rival": "random", "kind": "meeting"},
    ]
    shared = {"first": "talk", "second": "own", "difference": 0.25, "low": -0.5, "high": 0.75, "p_value": 1.0}
    rows = [shared | {"tasks": 22, "deals": 64, "faults": 3} | row for row in differences]
    games = {"agents": {}, "differences": rows} | part
    return {"agents": agents, "track": MASKED, "deals": "fixed", "results": {"games": games}}


def show(data: dict[str, Any], width: int) -> list[str]:
    """Returns the lines of a board's tables, without spaces at their ends, before the note."""
    output = io.StringIO()
    print_board(make_console(width=width, file=output), data, {})
    text = output.getvalue()
    lines = [line.rstrip() for line in text[: text.index("score: mean")].splitlines()]
    assert all(len(line) <= width for line in lines)
    return lines


def test_a_terminal_shows_paired_differences() -> None:
    sure = {"first": "own", "second": "random", "low": 0.125, "p_value": 0.0001}
    data = make_board({}, sure)
    assert show(data, 80) == [
        "paired differences",
        " " * 76 + "left",
        "pair                    difference         interval        p  tasks  deals   out",
        "─" * 80,
        "talk =                      +0.250  -0.500 … +0.750    1.000     22     64     3",
        "openai:gpt-5@https://a",
        "pi.openai.com/v1",
        "- own = runs/tiny",
        "(checkpoint)",
        "own = runs/tiny             +0.250  +0.125 … +0.750  < 0.001     22     64     3",
        "(checkpoint)",
        "- random",
    ]
    narrow = show(data, 60)
    assert "own = runs/tiny             +0.250  +0.125 … +0.750  < 0.001" in narrow
    assert narrow[-1] == "left out at 60 columns: tasks, deals, left out"


def test_of_very_many_differences_a_terminal_shows_the_clear_ones() -> None:
    clear = [{"low": 0.125}, {"difference": -0.25, "low": -0.5, "high": -0.125}]
    few, many = (show(make_board(*clear, *[{}] * count), 80) for count in (28, 29))
    assert sum("-0.500 … +0.750" in line for line in few) == 28
    assert [line[30:54] for line in many if "0.250" in line] == [
        "+0.250  +0.125 … +0.750 ",
        "-0.250  -0.500 … -0.125 ",
    ]
    assert many[-1] == "paired differences that are not clear: 29; --html shows them"


def test_a_meeting_of_faults_alone_is_shown() -> None:
    def show_pair(**pair: int) -> list[str]:
        pairs = {"talk vs random": {"tasks": 0, "deals": 0, "faults": 0, "missing": 0} | pair}
        return show(make_board(meetings={"pairs": pairs, "ratings": {}}), 60)

    assert show_pair(faults=4)[4:] == [
        "talk =                               -    -      0         0",
        "openai:gpt-5@https://api.op                         4 faults",
        "enai.com/v1",
        "vs random",
    ]
    assert show_pair(missing=2) == []  # not played yet


@pytest.mark.parametrize(
    ("low", "high", "interval"),
    [(-20.0, 80.4, "-20 … +80"), (812.0, None, "from +812"), (None, -80.0, "to -80"), (None, None, "-")],
)
def test_a_rating_can_have_one_end(low: float | None, high: float | None, interval: str) -> None:
    assert format_rating({"points": 30.0, "low": low, "high": high}) == ("+30", interval)


def test_costs_say_in_how_many_episodes_tokens_were_counted(board: Path) -> None:
    part = read(board)["results"]["games"]
    cost = {"prompt_tokens": 1200.0, "completion_tokens": 30.0, "seconds": 2.5, "episodes": 8}
    for counted, said in ((8, ""), (3, "counted in 3 of 8\n")):
        part["agents"]["first"]["cost"] = cost | {"counted": counted}
        assert describe_agent(part, "first", {})[-1] == f"1.2k + 30 tokens\n{said}2.5 s"


def test_every_game_of_several_players_has_a_scale() -> None:
    """``random`` is the first anchor and has 0; what equals score is 1/2 in games of two sides."""
    for game in GAMES:
        variant = load_task(DealSet().list_matches(game, 0)[0].task_id or 0).variant
        assert (game in SCALES) == (variant.players > 1)
        assert (game in MEETING_GAMES) == (variant.players == 2 and variant.zero_sum)
        if variant.players > 1:
            scale = SCALES[game]
            assert len(scale.anchors) == len(list_anchors(variant)) and scale.anchors[0] == 0
            assert scale.ties >= 0 and (scale.bias == 0 or variant.players > 2)


# -- the page: it has everything, it loads nothing, and no text of a file becomes a script -----------------


EVIL = '</script><script>alert(1)</script><img src=x onerror="alert(2)">\u202e\x1b%DATA% %SCRIPT% \' " &'


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
    match = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert match
    return reader, json.loads(match[1])


def test_the_page_has_tables_and_games(board: Path, tmp_path: Path) -> None:
    data, html = read(board), tmp_path / "page.html"
    count = write_board_page(data, html, {})
    reader, games = read_page(html)
    assert count == len(games) == 62  # all of them
    assert {game["game"] for game in games} == {"trace/strings", "blackjack", "leduc_poker", "goofspiel"}
    text = "".join(reader.texts)
    assert data["sha256"] in text and "Paired differences" in text
    first = data["results"]["games"]["agents"]["first"]
    assert f"{first['score']:.3f}\n{first['low']:.2f} … {first['high']:.2f}" in text
    assert "src" not in reader.attributes and not any(name.startswith("on") for name in reader.attributes)
    assert not re.search(r"(https?:)?//[a-z]", html.read_text().replace("http://www.w3.org", ""))
    with pytest.raises(InvalidValueError, match=r"--html must end in .html"):
        write_board_page(data, tmp_path / "page.txt", {})


def test_no_text_of_a_file_becomes_a_script(board: Path, tmp_path: Path) -> None:
    plain, forged = tmp_path / "plain.html", tmp_path / "forged.html"
    data = read(board)
    write_board_page(data, plain, {})
    changed = json.loads(json.dumps(data).replace('"random"', json.dumps(EVIL)))
    changed["deals"] = changed["track"] = EVIL
    changed["versions"] = {EVIL: EVIL}
    # Opponents by that name are not played again; only the tables have it.
    for entry, original in zip(changed["agents"], data["agents"], strict=True):
        entry["episodes"] = original["episodes"]
    write_board_page(changed, forged, {})
    expected, games = read_page(plain)
    reader, shown = read_page(forged)
    assert sorted(reader.tags) == sorted(expected.tags) and set(reader.attributes) == set(expected.attributes)
    seen = EVIL.replace("\u202e\x1b", r"\u202e\x1b")
    assert seen in "".join(reader.texts) and len(shown) == len(games)
    assert any(game["player"] == seen for game in shown) and "\u202e" not in forged.read_text("utf-8")
    assert "<img" not in render_tables(changed, {})


def test_replies_that_were_refused_are_turns_of_their_own(board: Path) -> None:
    row = find_rows(read(board), 1, "leduc_poker")[0]
    game = describe_record(make_record(row, "me", "masked"))
    actions = [turn["action"] for turn in game["turns"]]
    assert game["score"] == row["score"] and actions and set(actions) <= {0, 1, 2}
    replies = ["no idea", *map(str, actions)]
    told = describe_record(make_record({**row, "replies": replies}, "me", "unmasked"))
    assert [turn["action"] for turn in told["turns"]] == [None, *actions]
    assert [turn["answer"] for turn in told["turns"]] == replies


@pytest.mark.parametrize("history", [[], None])
def test_a_trace_without_a_choice_is_shown(board: Path, history: list[int] | None) -> None:
    row = find_rows(read(board), 0, "trace/strings")[0]
    (turn,) = describe_record(make_record({**row, "history": history}, "me", "masked"))["turns"]
    assert (turn["action"], turn["answer"]) == (None, "")
