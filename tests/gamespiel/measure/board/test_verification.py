"""``gamespiel verify`` and files of boards: an honest board passes, and each forgery is found.

The forgers of these files are careful: they correct every digest and, if they change episodes, all results.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from game_gym.backends import Ending, GameTurn, LocalBackend
from game_gym.opponents.mcts import MctsOpponent
from gamespiel.cli import main
from gamespiel.endpoints.chat import EndpointError
from gamespiel.errors import InvalidValueError
from gamespiel.measure.board import file as files
from gamespiel.measure.board import verification
from gamespiel.measure.board.agents import describe, read_agents
from gamespiel.measure.board.benchmark import DealSet
from gamespiel.measure.board.episodes import pick_output
from gamespiel.measure.board.file import BoardError, read_bytes, write_board
from gamespiel.measure.board.jobs import Job, explain_episode
from gamespiel.measure.board.meetings import describe_meeting
from gamespiel.measure.board.model_replay import explain_difference
from gamespiel.measure.board.replays import ReplayError, check_chances
from gamespiel.measure.board.results import summarize
from gamespiel.measure.board.verification import inspect_board
from tests.gamespiel.endpoints.models import Body, ModelStub, chatty, status
from tests.gamespiel.measure.board.conftest import LATER, Edit, find_rows, forge, play, read, shrink

SHIPPED = Path(__file__).parents[4] / "benchmarks" / "results" / "leaderboard.json.gz"


@pytest.mark.trains
@pytest.mark.sample
def test_an_honest_board_passes(board: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = inspect_board(board, quick=True)
    assert report.findings == []
    # random: 1 trace, 1 blackjack, 6 leduc_poker, 4 goofspiel; the search 7 of them.
    assert report.episodes == 2 * (12 + 12 + 7)
    assert [note.partition(":")[0] for note in report.notes] == [
        "3 of 3 pairs of agents that can meet have no meeting", "--quick",
    ]  # fmt: skip
    assert main(["verify", str(board)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "everything that can be checked is as it says" in shown and "62 episodes with" in shown
    data = read(board)
    find_rows(data, 0, "leduc_poker")[0]["score"] = 1.0
    write_board(board, data)
    assert main(["verify", str(board), "--quick"]) == 2
    printed = capsys.readouterr()
    assert "WRONG: agents.0 'random'" in printed.out and "is not what it says" in printed.err


def _drop_loss(data: dict[str, Any]) -> None:
    rows = data["agents"][0]["episodes"]
    rows.remove(next(row for row in rows if row["result"] == "loss" and row["task"] == "leduc_poker"))


def _copy_game(data: dict[str, Any]) -> None:
    """Puts one deal's game in the place of another's, and keeps the other's address."""
    rows = find_rows(data, 2, "leduc_poker")
    rows[6] |= {key: rows[0][key] for key in ("score", "result", "returns", "history")}


def _swap_labels(data: dict[str, Any]) -> None:
    """The stronger agent's games under a weaker name: the search says that it is ``random``."""
    data["agents"][0] |= {"name": "mcts:4", "agent": "mcts:4"}
    data["agents"][2] |= {"name": "random", "agent": "random"}


def _change_opponent(data: dict[str, Any]) -> None:
    """The opponent of goofspiel bids another card: the second number of a pair, or the first."""
    row = find_rows(data, 0, "goofspiel")[0]
    at = 1 if row["seat"] == 0 else 0
    start = len(row["history"]) % 2  # a chance move may be before the bids
    row["history"][start + at] = (row["history"][start + at] + 1) % 3


def _change_chance(data: dict[str, Any]) -> None:
    row = find_rows(data, 0, "leduc_poker")[0]
    row["history"][0] = next(card for card in range(6) if card not in row["history"][:2])


def _change_choice(data: dict[str, Any]) -> None:
    row = find_rows(data, 0, "trace/strings")[0]
    row["history"] = [(row["history"][0] + 1) % 2]


def _give_up(data: dict[str, Any]) -> None:
    row = find_rows(data, 2, "leduc_poker")[1]
    row["history"].pop()
    row["gave_up"] = True


def _edit_episodes(agent: int, change: Callable[[list[dict[str, Any]]], object]) -> Edit:
    return lambda data: change(data["agents"][agent]["episodes"])


def _edit_loss(agent: int, task: str, **changes: Any) -> Edit:
    """Changes an agent's first record of a task that scores below 1/2."""
    return lambda data: next(r for r in find_rows(data, agent, task) if r["score"] < 0.5).update(changes)


FORGED_EPISODES: list[tuple[Edit, str]] = [
    (
        _edit_loss(1, "leduc_poker", score=1.0),
        r"1 'first', episode \d+ \(leduc_poker, deal 0.*score: the file says 1.0",
    ),
    (_drop_loss, r"0 'random', .*: address: missing is leduc_poker, deal \d, seat \d against"),
    (
        _edit_episodes(1, lambda rows: rows.append(dict(rows[3]))),
        r"1 'first', address: \S+, deal 0, seat \d against \S+ is there 2 times",
    ),
    (_copy_game, r"2 'mcts:4', episode 8 \(leduc_poker, deal 1.*move \d+: the file says action"),
    (_swap_labels, r"0 'mcts:4', episode 0: address: missing is blackjack"),
    (_change_opponent, r"0 'random', episode \d+ \(goofspiel, deal 0.*move \d+: .* action \d+, and"),
    (_change_chance, r"0 'random', episode \d+ \(leduc_poker, deal 0.*move 0: the file says action"),
    (_change_choice, r"0 'random', episode 0 \(trace/strings, deal 0.*differs from the game at move 0"),
    (
        _edit_loss(0, "goofspiel", result="fault", score=None),
        r"0 'random', episode \d+ \(goofspiel.*: (result|score): the file says",
    ),
    (
        lambda data: find_rows(data, 1, "leduc_poker")[2]["history"].pop(),
        r"1 'first', episode \d+ \(leduc_poker",
    ),
    (_give_up, r"2 'mcts:4', episode 2 \(leduc_poker"),
    (
        _edit_episodes(0, lambda rows: rows.append({**rows[0], "deal": 2})),
        r"0 'random', episode 24: address: no more episodes were planned \(2 rounds\)",
    ),
    (lambda data: data.update(deals=LATER), r"0 'random', episode \d+ .*seed is \d+, and the deal has \d+"),
]
"""Edits, and what is found: the agent's number and name, the episode, and what is wrong."""


MORE = [pytest.param(*more, marks=[pytest.mark.families, pytest.mark.sample]) for more in FORGED_EPISODES[1:]]


@pytest.mark.parametrize(("edit", "said"), [FORGED_EPISODES[0], *MORE])
def test_a_forged_episode_is_found(board: Path, edit: Edit, said: str) -> None:
    # A forger of addresses cannot correct the results too: only whole deals enter them.
    report = forge(board, edit)
    assert any(re.search(rf"agents\.{said}", line) for line in report.findings), report.findings


def test_findings_are_in_the_order_of_the_file(board: Path) -> None:
    """Goofspiel's episodes of all agents are played again before those of Leduc poker."""

    def edit(data: dict[str, Any]) -> None:
        for agent, task in enumerate(("leduc_poker", "goofspiel")):
            _edit_loss(agent, task, score=1.0)(data)

    assert [line.split(",")[0] for line in forge(board, edit).findings] == [
        "agents.0 'random'",
        "agents.1 'first'",
    ]


def test_a_quick_look_finds_faults_that_were_none(board: Path) -> None:
    """A loss of the search is called a fault, which would leave the score."""
    data = read(board)
    _edit_loss(2, "leduc_poker", score=None, result="fault", error="the search broke down")(data)
    write_board(board, data)
    findings = inspect_board(board, quick=True).findings
    assert any(
        re.search(r"agents.2 'mcts:4', episode \d+ \(leduc_poker.*: (result|score|error): ", line)
        for line in findings
    )


@pytest.mark.trains
@pytest.mark.sample
def test_probabilities_are_those_of_choices(model_board: Path) -> None:
    """One for each of the agent's turns, and 1 where it had no choice, as on the last card of goofspiel."""
    assert inspect_board(model_board, quick=True).findings == []

    def change(task: str, at: int, *chances: float) -> list[str]:
        def edit(data: dict[str, Any]) -> None:
            probabilities = find_rows(data, 0, task)[0]["chances"]
            probabilities[at : at + 1] = chances

        return [line for line in forge(model_board, edit).findings if "chances: " in line]

    assert change("leduc_poker", 0, 0.5) == []  # nothing shows that it was another one
    assert change("leduc_poker", 0, 0.0) and change("leduc_poker", 0) and change("leduc_poker", 0, 0.5, 0.5)
    assert change("goofspiel", -1, 0.5)
    assert change("leduc_poker", 0, 0.1234567) and change("leduc_poker", 0, 5e-7)  # of seven places


def test_probabilities_are_not_all_tiny() -> None:
    """Each of 1e-6 was at most 1.5e-6. Of two actions, two have a product of 1/(n c) of 1e11, three 4e16."""
    check_chances([1e-6, 1e-6], [2, 2])
    with pytest.raises(ReplayError, match=r"as low as these come at most once in 1e\+15 episodes"):
        check_chances([1e-6] * 3, [2] * 3)


@pytest.mark.parametrize(
    ("theirs", "ours", "same"),
    [
        (0.5, 0.509, True), (0.5, 0.511, False), (0.009, 0.005, True), (0.009, 0.004, False),
        (0.009, 1e-6, False), (2e-6, 1e-6, True), (4e-6, 1e-6, False),
    ],
)  # fmt: skip
def test_a_models_probability_is_near_and_alike(theirs: float, ours: float, same: bool) -> None:
    row, played = ({"history": [1], "chances": [chance]} for chance in (theirs, ours))
    assert (explain_difference(row, played) == "") == same == (explain_difference(played, row) == "")


def test_a_quick_look_does_not_search_where_a_policy_writes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """But for a loss that is called a fault."""
    shrink(monkeypatch, ("leduc_poker",))
    path = tmp_path / "board.json"
    play(path, "tiny=model:tiny", track="unmasked")

    def refuse(self: MctsOpponent, view: object) -> int:
        raise ValueError("it searched")

    monkeypatch.setattr(MctsOpponent, "act", refuse)
    assert inspect_board(path, quick=True).findings == []
    assert "it searched" in inspect_board(path).findings[0]
    data = read(path)
    row = next(row for row in find_rows(data, 0, "leduc_poker") if row["opponent"] != "random")
    row.update(score=None, result="fault", error="broke")
    write_board(path, data)
    assert any("it searched" in line for line in inspect_board(path, quick=True).findings)


def test_a_seed_of_a_replay_is_checked_before_it(board: Path) -> None:
    with pytest.raises(InvalidValueError, match="--seed must be at least 0, not -1"):
        verification.verify_board(board, seed=-1)


def _raise(values: Any, key: int | str, by: float) -> None:
    values[key] += by


FORGED_RESULTS: list[tuple[Edit, str]] = [
    (
        lambda games: _raise(games["agents"]["first"]["rating"], "points", 5.0),
        "first.rating.points: the file says",
    ),
    (
        lambda games: _raise(games["agents"]["first"]["tasks"]["leduc_poker"], "low", 0.01),
        "first.tasks.leduc_poker.low: the file says",
    ),
    (lambda games: games["agents"].pop("random"), "random: it is missing"),
    (lambda games: games["agents"].update(me={"score": 1.0}), "me: it is there, and no result"),
]


@pytest.mark.parametrize(("edit", "where"), FORGED_RESULTS)
def test_a_forged_result_is_found(board: Path, edit: Edit, where: str) -> None:
    report = forge(board, lambda data: edit(data["results"]["games"]), results=False)
    assert (
        [one for one in report.findings if one.startswith(f"results.games.agents.{where}")]
        == report.findings
        != []
    )


def test_agents_of_different_tracks_are_not_rated_together(board: Path) -> None:
    report = forge(board, lambda data: data["agents"][1].update(track="unmasked"), results=False)
    (finding,) = [line for line in report.findings if "track" in line]
    assert "agents.1 'first': it is of track 'unmasked'" in finding and "not rated together" in finding


def test_a_deal_that_was_taken_from_the_end_is_counted(board: Path) -> None:
    """Nobody can tell it from one that was not played, so it is said how many there are: 7 of 8."""

    def edit(data: dict[str, Any]) -> None:
        rows = data["agents"][0]["episodes"]
        rows[:] = [row for row in rows if (row["task"], row["deal"]) != ("goofspiel", 1)]

    report = forge(board, edit)
    assert report.findings == []
    assert any("agents.0 'random': 7 of 8 deals are there, the first ones" in note for note in report.notes)


def test_a_changed_byte_is_found_and_the_board_not_gone_on_with(board: Path) -> None:
    """Without any correction: in a name, in a space that was added, in a digit of a digest."""
    content = board.read_bytes()
    for old, new in (
        (b'"rounds":2', b'"rounds":3'),
        (b'"rounds":2', b'"rounds": 2'),
        (b'"sha256":"', b'"sha256":"0'),
    ):
        board.write_bytes(content.replace(old, new, 1))
        findings = inspect_board(board, quick=True).findings
        assert any(line.startswith(("byte ", "sha256: the file says")) for line in findings)
        with pytest.raises(BoardError, match="was changed after it was written: gamespiel verify says where"):
            files.load_board(board)
    board.write_bytes(content + b" ")
    assert any(f"byte {len(content):,}" in line for line in inspect_board(board, quick=True).findings)


def test_a_models_choice_among_outputs_is_scored_again(small: None) -> None:
    """The model's trace has a probability beside what a baseline's has."""
    match = DealSet().list_matches("trace/strings", 0)[0]
    row = pick_output(match, 0) | {"chances": [0.5]}
    entry = describe(read_agents(["model:tiny-trace"], "masked")[0], "masked")

    def explain(episode: dict[str, Any]) -> str:
        return explain_episode(Job("", match, episode, entry), DealSet(), "masked", True)

    assert explain(row) == ""
    assert "score: the file says" in explain({**row, "score": 1.0 - row["score"]})
    for wrong in ([0.0], [], [0.5, 0.5]):
        assert "chances: " in explain({**row, "chances": wrong})
    assert "given up" in explain({**row, "gave_up": True})


def talk(body: Body) -> str:
    """Replies of all kinds in games, and 7 as what a program prints."""
    return chatty(body) if "Legal Actions:" in str(body["messages"]) else "7"


def answer_unlisted(body: Body) -> str:
    """The number of an action first, then names of which some game knows one."""
    said = [line["content"] for line in body["messages"]]
    assert not any("Legal Actions:" in text for text in said)
    return "7" if len(said) < 2 else ("1", "Call", "Hit")[(len(said) // 2 - 1) % 3]


@pytest.mark.trains
@pytest.mark.sample
def test_without_a_list_a_reply_is_a_name(small: None, tmp_path: Path) -> None:
    path = tmp_path / "board.json"
    with ModelStub(answer_unlisted) as model:
        data = play(path, f"talker=openai:m@{model.url}", track="unlisted", rounds=1)
    assert inspect_board(path).findings == []
    rows = find_rows(data, 0, "leduc_poker")
    assert all(row["replies"][:2] == ["1", "Call"] for row in rows)  # a number names nothing here

    def list_actions(data: dict[str, Any]) -> None:
        data["track"] = data["agents"][0]["track"] = "unmasked"

    # With the list, "1" would have been the first move.
    assert any("agents.0 'talker', episode" in line for line in forge(path, list_actions).findings)


@pytest.mark.trains
@pytest.mark.sample
def test_what_a_model_wrote_is_read_again(
    small: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused replies and games given up follow from the replies; the endpoint counts 2 tokens of each."""
    path = tmp_path / "board.json"
    with ModelStub(talk) as model:
        data = play(path, f"talker=openai:m@{model.url}", track="unmasked", rounds=1)
    assert data["agents"][0]["track"] == "unmasked"
    assert inspect_board(path).findings == []
    rows = find_rows(data, 0, "goofspiel")  # which has eight turns or more
    assert any("no idea" in row["replies"] for row in rows)
    assert all(row["cost"]["completion_tokens"] == 2 * len(row["replies"]) for row in rows)
    cost = data["results"]["games"]["agents"]["talker"]["cost"]
    counted = files.load_board(path)
    del counted.played["talker", "goofspiel", 0][0]["cost"]["prompt_tokens"]
    others = summarize(counted)["games"]["agents"]["talker"]["cost"]
    assert cost["counted"] == cost["episodes"] == others["episodes"] == others["counted"] + 1
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["leaderboard", "--board", str(path), "--prices", "talker=0:1000000"]) == 0
    assert f" {cost['completion_tokens']:.3g} dollars" in capsys.readouterr().out

    def rewrite(data: dict[str, Any]) -> None:
        for row in find_rows(data, 0, "goofspiel"):  # the first reply names the seventh card
            row["replies"] = ["0", *row["replies"][1:]]

    assert any("agents.0 'talker', episode" in line for line in forge(path, rewrite).findings)
    report = forge(path, lambda data: find_rows(data, 0, "goofspiel")[0]["replies"].pop())
    assert any("the replies end after" in line for line in report.findings)
    report = forge(path, lambda data: find_rows(data, 0, "goofspiel")[0].pop("cost"))
    assert any("has costs if and only if" in line for line in report.findings)


@pytest.mark.trains
@pytest.mark.sample
def test_agents_that_meet_are_verified(small: None, finished: Path, tmp_path: Path) -> None:
    """Two that write, of which one never moves, and a baseline; a policy behind its mask."""
    path, masked = tmp_path / "board.json", tmp_path / "masked.json"
    with ModelStub(talk) as model, ModelStub(lambda body: "no idea") as lost:
        names = f"one=openai:m@{model.url}", f"two=openai:m@{lost.url}", "random"
        data = play(path, *names, track="unmasked", meetings=True)
    rows = data["agents"][5]["episodes"]  # two vs random
    assert all(row["gave_up"] and row["score"] < 0.5 and "cost" not in row for row in rows)
    assert inspect_board(path).findings == []  # also where both move at once
    notes = forge(path, lambda data: data["agents"].pop()).notes
    assert any(note.startswith("1 of 3 pairs of agents that can meet have no meeting") for note in notes)
    data = play(masked, f"policy={finished}", "random", "untrained=model:tiny", meetings=True)
    assert [entry["name"] for entry in data["agents"][3:]] == ["policy vs random"]
    assert inspect_board(masked).findings == []
    report = forge(path, lambda data: data["agents"][3]["episodes"][0]["replies"].pop())
    assert any("the replies end after" in line for line in report.findings)
    row = data["agents"][3]["episodes"][0]
    forged: list[tuple[str, dict[str, Any]]] = [
        ("score: the file says", {"score": 0.123}),
        ("the history ends where", {"history": row["history"][:-1]}),
        ("played again the game has", {"history": [*row["history"], 0]}),
        ("address", {"opponent": "policy"}),
        ("'chances'", {"chances": [1.0]}),
    ]
    for said, values in forged:
        report = forge(masked, lambda data, values=values: data["agents"][3]["episodes"][0].update(values))
        assert any(said in line for line in report.findings)
    refused: list[tuple[str, int, dict[str, Any]]] = [
        ("no meeting of two agents before it", 3, {"rival": "nobody"}),
        ("other entries than its own", 3, {"name": "another"}),
        ("meets no other agent", 3, {"name": "untrained vs random", "agent": "untrained"}),
        ("beside its name, not .'rival'", 1, {"rival": "policy"}),
        ("writes replies", 1, {"kind": "endpoint", "track": "masked"}),
    ]
    for said, place, about in refused:
        with pytest.raises(BoardError, match=said):
            forge(masked, lambda data, place=place, about=about: data["agents"][place].update(about))


def test_a_move_that_openspiel_refuses_is_in_no_history(
    small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As oware's 1001st: here every move of an agent after the fifth action."""
    path, go_on = tmp_path / "board.json", LocalBackend.play

    def refuse(self: LocalBackend, action: int) -> GameTurn:
        if len(history := self.history()) < 5:
            return go_on(self, action)
        ending = Ending(None, [0.0, 0.0], [0.0, 0.0], "fault", history, "refused")
        return GameTurn(0, "", [], [], 0.0, ending)

    with monkeypatch.context() as patch:
        patch.setattr(LocalBackend, "play", refuse)
        data = play(path, "random", "first", meetings=True)
        assert any(row["result"] == "fault" for row in data["agents"][2]["episodes"])
        report = inspect_board(path)
        assert report.findings == []
        losers = {note.partition(":")[0]: note.partition("its faults are ")[2] for note in report.notes}
        assert losers["'first'"] == "losses"
        assert losers["'random vs first'"] == "losses of the agent that was to move"
    assert any("agents.2 'random vs first', episode" in line for line in inspect_board(path).findings)


def test_an_endpoint_that_refuses_loses_and_one_that_is_away_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The second request is refused, in the middle of a game; later all are."""
    shrink(monkeypatch, ("leduc_poker",))
    path = tmp_path / "board.json"
    asking: dict[str, Any] = {"track": "unmasked", "concurrency": 1}
    with ModelStub(lambda body: "1") as model:
        model.faults = [None, status(400)]
        data = play(path, f"talker=openai:m@{model.url}", **asking)
        lost, *others = find_rows(data, 0, "leduc_poker")
        assert (lost["replies"], lost["gave_up"], lost["result"]) == (["1"], True, "loss")
        assert lost["score"] < 0.5
        assert "400" in lost["error"] and not any("error" in row for row in others)
        assert inspect_board(path).findings == []
        model.faults = [status(403)] * 100
        with pytest.raises(EndpointError, match="403"):
            play(path, f"talker=openai:m@{model.url}", rounds=2, **asking)
    assert read(path)["agents"][0]["episodes"] == data["agents"][0]["episodes"]


@pytest.mark.trains
def test_the_shipped_board_is_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of 40 episodes is played again; ``gamespiel verify`` plays all of them."""
    replay = verification.replay_jobs

    def replay_some(jobs: Any, *rest: Any) -> None:
        replay(jobs[::40], *rest)

    monkeypatch.setattr(verification, "replay_jobs", replay_some)
    report = inspect_board(SHIPPED, quick=True)
    assert report.findings == [] and report.episodes > 20
    assert SHIPPED.stat().st_size < 1_500_000


# -- files of boards: whoever wrote them, a named error or the board ---------------------------------------


def edit(content: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    data = json.loads(content)
    change(data)
    return json.dumps(data).encode()


def replace(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda content: content.replace(old, new, 1)


def edit_episode(**changes: Any) -> Callable[[bytes], bytes]:
    return lambda content: edit(content, lambda data: data["agents"][0]["episodes"][0].update(changes))


def name_first(name: str) -> Callable[[bytes], bytes]:
    return lambda content: edit(content, lambda data: data["agents"][0]["about"].update(name=name))


STRANGE: list[tuple[Callable[[bytes], bytes], str]] = [
    (lambda content: b"", "is no board: Expecting value"),
    (lambda content: b"\x00\xff\xfe", "is no board: 'utf-8' codec"),
    (lambda content: (b"[" + b" " * 15) * 100_000, "nested too deeply"),
    (lambda content: b'{"a":             ' * 50 + b"1" + b"}" * 50, "nested more than 16 deep"),
    (lambda content: b"[" + b"[]," * 32 + b"0]", "more than 6 lists and objects, allowed: one per 16 bytes"),
    (lambda content: json.dumps(dict.fromkeys(range(1001))).encode(), "1,001 names, allowed: 1,000"),
    (replace(b'"results":{', b'"results":{"a":' + b"9" * 400 + b","), "the number 9999"),
    (
        replace(b'"results":{', b'"results":{"a":1e999,'),
        "the number 1e999 was given, allowed: -1e+16 … 1e+16",
    ),
    (replace(b'"score":', b'"score":NaN,"x":'), "NaN was given"),
    (replace(b'"score":', b'"score":1e999,"x":'), "is no board"),
    (replace(b'"score":', b'"score":0,"score":'), "has the name 'score' twice"),
    (replace(b'"rounds":2', b'"rounds":' + b"9" * 5000), "is no board"),
    (replace(b'"rounds":2', b'"rounds":99999999'), "rounds: "),
    (replace(b'"rounds":2', b'"rounds":true'), "rounds: "),
    (lambda content: edit(content, lambda data: data.update(more=1)), "more: "),
    (lambda content: edit(content, lambda data: data.update(agents=[3])), "an object with the names about"),
    (name_first("rand\u200bom"), r"the name 'rand\u200bom'"),
    (name_first("FIRST"), "the names 'FIRST' and 'first'"),
    (edit_episode(history="0"), "agents.0.episodes.0.history"),
    (edit_episode(history=[10**10]), "agents.0.episodes.0.history."),
    (lambda content: edit(content, lambda data: data.update(format="x")), "has the format 'x'"),
    (lambda content: edit(content, lambda data: data.update(benchmark="x")), "is of the benchmark 'x'"),
]


@pytest.mark.parametrize(("change", "said"), STRANGE)
def test_a_strangers_file_is_a_named_error(board: Path, change: Callable[[bytes], bytes], said: str) -> None:
    with pytest.raises(BoardError) as error:
        files.parse_board(change(board.read_bytes()), "FILE")
    assert said in str(error.value) and len(str(error.value)) < 1000


def test_brackets_of_replies_are_no_lists_and_one_wrong_episode_is_enough(board: Path) -> None:
    """Pydantic keeps what is wrong with each, which takes 1,000 times the memory of a byte."""
    content = board.read_bytes()
    reply = '\\"[' * 50_000
    read_back = files.parse_board(edit_episode(replies=[reply])(content), "FILE")
    assert read_back["agents"][0]["episodes"][0]["replies"] == [reply]
    with pytest.raises(BoardError) as error:
        files.parse_board(edit(content, lambda data: data["agents"][0].update(episodes=[0] * 9)), "FILE")
    assert isinstance(error.value.__cause__, ValidationError) and error.value.__cause__.error_count() == 1


@pytest.mark.parametrize(
    ("value", "said"), [(0, "boards are not written so"), (-0.0, "score: the file says -0.0, and")]
)
def test_a_number_is_written_in_one_way(board: Path, value: float, said: str) -> None:
    def change(data: dict[str, Any]) -> None:
        rows = [row for entry in data["agents"] for row in entry["episodes"]]
        next(row for row in rows if row["score"] == 0)["score"] = value

    assert any(said in line for line in forge(board, change, results=False).findings)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"name": "x"}, "line 2: entry: agent: Field required"),
        (
            {"name": "x", "agent": "x", "kind": "baseline", "track": None},
            "line 2: 'x': agent 'x' is no baseline",
        ),
        (describe_meeting("x", "first", "masked"), "'x vs first' is no meeting of two agents before it"),
    ],
)
def test_an_entry_that_is_none_beside_a_board(board: Path, entry: dict[str, Any], said: str) -> None:
    loaded = files.load_board(board)
    lines = [files.describe_head(loaded), {"entry": entry}]
    board.with_name("board.json.journal").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.raises(BoardError, match=f"{said}.*; without this file, what was played"):
        files.open_journal(loaded, board)


def test_a_board_that_is_too_large_is_not_read(board: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = board.read_bytes()
    packed = files.pack(content)
    monkeypatch.setattr(files, "LARGEST", len(content) - 1)
    with pytest.raises(BoardError, match=r"board\.json' cannot be read: .* 0 MiB, which is the most"):
        read_bytes(board)
    with pytest.raises(BoardError, match="unpacked, which is the most of a board"):
        files.unpack(packed, "FILE")


def test_a_packed_board_unpacks_with_gzip_and_no_byte_of_it_is_free(board: Path) -> None:
    """Every byte is of the head, of the stream or of the checksum and length at the end."""
    content = b"GameSpiel " * 40
    packed = files.pack(content)
    assert zlib.decompress(packed, 31) == content == files.unpack(packed, "FILE")
    for at in range(len(packed)):
        for flip in (1, 128):
            changed = packed[:at] + bytes([packed[at] ^ flip]) + packed[at + 1 :]
            try:
                payload = files.unpack(changed, "FILE")
            except BoardError:
                continue
            assert payload == content, at  # bits after the last block mean nothing
    for cut in (packed[:-1], packed + b"x", packed[:20], b""):
        with pytest.raises(BoardError):
            files.unpack(cut, "FILE")


def test_there_is_one_way_to_write_a_board(board: Path, tmp_path: Path) -> None:
    data = read(board)
    assert files.render(data) == board.read_bytes()
    packed = tmp_path / "board.json.gz"
    write_board(packed, {key: value for key, value in data.items() if key != "sha256"})
    assert read_bytes(packed) == board.read_bytes()
    assert json.loads(board.read_bytes())["rounds"] == 2  # it is JSON for everybody
