"""``gamespiel eval --compare``: exact games, duplicate deals, stops and what is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gamespiel.cli import main
from gamespiel.config import Config, InvalidValueError, saved_config
from gamespiel.measure import play
from gamespiel.measure.compare import run
from gamespiel.measure.compare.options import CompareOptions, enter
from gamespiel.measure.compare.run import compare
from gamespiel.measure.differences import POOLED, Column, compare_all
from tests.consoles import quiet
from tests.gamespiel.endpoints.models import ModelStub, recorded
from tests.gamespiel.measure.test_exploit import config

pytestmark = [pytest.mark.trains, pytest.mark.sample]


def run_comparison(folder: Path, settings: Config, *names: str, **options: Any) -> dict[str, Any]:
    """Returns the results, after a check that the file has them."""
    output = folder / "result.json"
    agents = tuple(enter(name, settings, None, None) for name in names)
    results = compare(CompareOptions(settings, agents, output=output, **options), quiet())
    written: dict[str, Any] = json.loads(output.read_text())
    assert written == json.loads(json.dumps(results).replace("NaN", "null").replace("Infinity", "null"))
    return dict(written["comparison"])


def test_a_small_game_is_solved_and_not_played(tmp_path: Path) -> None:
    """Against uniform play in kuhn ``first`` scores 3/8 (test_evaluation), and uniform play 1/2.

    A best response earns 1/2 and 5/12 (test_exact of game_gym); ``first`` earns -1/2 from both seats.
    """
    results = run_comparison(tmp_path, config("kuhn_poker"), "random", "first")
    cells = {name: games["kuhn_poker"]["exact"] for name, games in results["agents"].items()}
    assert cells["first"]["score"] == pytest.approx(3 / 8)
    assert cells["random"]["score"] == pytest.approx(1 / 2)
    assert cells["first"]["best"] == pytest.approx([1 / 2, 5 / 12])
    assert cells["first"]["share"] == pytest.approx(-1 / (1 / 2 + 5 / 12))
    (difference,) = results["differences"]
    assert difference["exact"] and difference["difference"] == pytest.approx(1 / 8)
    assert difference["p_value"] is None and difference["low"] == difference["high"]
    assert results["episodes"] == []


def test_the_rest_is_played_on_the_same_deals_from_every_seat(tmp_path: Path) -> None:
    results = run_comparison(tmp_path, config("tic_tac_toe"), "random", "first", num_episodes=6)
    rows: dict[str, list[Any]] = {"random": [], "first": []}
    for row in results["episodes"]:
        rows[row["agent"]].append((row["place"], row["deal"], row["seed"], row["seat"]))
    assert rows["random"] == rows["first"] and len(rows["first"]) == 12
    assert [(deal, seat) for _, deal, _, seat in rows["first"]] == [(d, s) for d in range(6) for s in (0, 1)]
    # By hand from the episodes: a deal's difference is the mean over its seats.
    scores = {(row["agent"], row["place"]): row["score"] for row in results["episodes"]}
    by_deal = [
        sum(scores["random", place] - scores["first", place] for place in (2 * deal, 2 * deal + 1)) / 2
        for deal in range(6)
    ]
    (difference,) = results["differences"]
    assert difference["difference"] == pytest.approx(sum(by_deal) / 6) and difference["deals"] == 6
    assert results["agents"]["first"]["tic_tac_toe"]["why_not_exact"].startswith("tic_tac_toe was given")


def test_known_luck_is_taken_out_where_a_search_plays_a_small_game(tmp_path: Path) -> None:
    """The search is not exact, ``random`` is and does not play: only the search's luck counts."""
    results = run_comparison(tmp_path, config("kuhn_poker"), "mcts:5", "random", num_episodes=4)
    cell = results["agents"]["mcts:5"]["kuhn_poker"]
    assert cell["reduced"] and cell["estimates"] != cell["scores"]
    assert results["agents"]["random"]["kuhn_poker"]["exact"]["score"] == pytest.approx(1 / 2)
    (difference,) = results["differences"]
    assert difference["factor_saved"] > 0 and not difference["exact"]
    assert difference["difference"] == pytest.approx(sum(cell["estimates"]) / 4 - 1 / 2)
    assert {row["agent"] for row in results["episodes"]} == {"mcts:5"}


def column_of(*scores: float | None) -> Column:
    """An agent's column of these scores, one per deal, with None for a fault."""
    return Column(scores, scores, (0.0, 1.0))


def test_several_games_are_pooled_with_equal_weights() -> None:
    """Differences of a and b: 1/2, 1/2, 0 in hex, and 1/4, 0 in go, where b had a fault in the third deal.

    The means are 1/3 and 1/8, so 11/48 over both. There are two rounds, since the third deal is left out.
    """
    solved = Column((None,) * 3, (None,) * 3, (0.25, 0.25), 0.25)
    columns = {
        "hex": {"a": column_of(1.0, 0.5, 0.5), "b": column_of(0.5, 0.0, 0.5), "c": solved},
        "go": {"a": column_of(0.75, 0.5, 0.5), "b": column_of(0.5, 0.5, None), "c": solved},
    }
    differences = compare_all(("a", "b", "c"), columns, detect=0.1, anytime=False)
    rows = {(one.first, one.second, one.game): one for one in differences}
    assert len(rows) == 9  # three pairs, two games and all games
    hexes, pooled = rows["a", "b", "hex"], rows["a", "b", POOLED]
    assert hexes.estimate.values.ravel().tolist() == [0.5, 0.5, 0.0] and hexes.faults == 0
    assert rows["a", "b", "go"].faults == 1
    assert pooled.estimate.mean == pytest.approx(11 / 48) and pooled.faults == 1
    assert pooled.estimate.values.tolist() == [[0.5, 0.25], [0.5, 0.0]]
    assert hexes.low < 1 / 3 < hexes.high and not hexes.clear
    assert rows["a", "c", "hex"].estimate.values.ravel().tolist() == [0.75, 0.25, 0.25]
    columns = {"hex": {"a": column_of(*[1.0] * 40), "b": column_of(*[0.0] * 40)}}
    for anytime in (False, True):
        (lost,) = compare_all(("b", "a"), columns, detect=0.1, anytime=anytime)
        assert lost.clear and lost.high < 0 and lost.p_value is not None and lost.p_value < 0.001


def test_it_stops_when_it_is_clear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "AT_ONCE", 16)
    settings = config("tic_tac_toe")
    part = run_comparison(tmp_path, settings, "first", "mcts:20x1", num_episodes=200, until_clear=True)
    assert part["stopped_early"] and part["rounds"] < 100 and part["rounds"] % 8 == 0
    (difference,) = part["differences"]
    assert difference["high"] < 0
    # The episodes that were played are the beginning of those that would have been.
    whole = run_comparison(tmp_path, settings, "first", "mcts:20x1", num_episodes=part["rounds"])
    assert whole["episodes"] == part["episodes"]


def test_ctrl_c_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "AT_ONCE", 4)
    settings, names = config("tic_tac_toe"), ("random", "first")
    expected = run_comparison(tmp_path / "whole", settings, *names, num_episodes=6)
    calls, play_matches = [], play.EnvironmentPlayer.play

    def stop(self: Any, *arguments: Any) -> None:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        play_matches(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(play.EnvironmentPlayer, "play", stop)
        with pytest.raises(KeyboardInterrupt):
            run_comparison(tmp_path, settings, *names, num_episodes=6)
    (journal,) = tmp_path.glob("*.jsonl")
    journal.write_bytes(journal.read_bytes() + '{"agent": "ra·'.encode()[:-1])  # cut by a kill
    assert len(journal.read_text(errors="ignore").splitlines()) == 9
    with pytest.raises(InvalidValueError, match="has 8 episodes of this command: --resume"):
        run_comparison(tmp_path, settings, *names, num_episodes=6)
    assert run_comparison(tmp_path, settings, *names, num_episodes=6, resume=True) == expected
    # Over: the same command begins anew, and says the same.
    assert run_comparison(tmp_path, settings, *names, num_episodes=6) == expected
    with pytest.raises(InvalidValueError, match="--resume: there is no"):
        run_comparison(tmp_path, settings, *names, num_episodes=7, resume=True)


def test_a_run_is_compared_with_baselines(finished: Path, tmp_path: Path) -> None:
    """A checkpoint's probabilities are known, so it is exact in kuhn poker, and is not played."""
    settings, mine = saved_config(finished), finished / "checkpoints"
    newest = sorted(mine.glob("step-*"))[-1]
    agents = (enter("run", settings, settings, newest), enter("random", settings, None, None))
    output = tmp_path / "result.json"
    results = compare(CompareOptions(settings, agents, num_episodes=2, output=output), quiet())
    cell = results["comparison"]["agents"]["run"]["kuhn_poker"]["exact"]
    assert cell["best"] == pytest.approx([1 / 2, 5 / 12])
    assert results["compared"][0]["track"] == "masked" and len(results["compared"][0]["sha256"]) == 64
    assert results["comparison"]["episodes"] == []
    written = (agents[0], enter("openai:model@http://127.0.0.1:9", settings, None, None))
    with pytest.raises(InvalidValueError, match="are on different tracks"):
        CompareOptions(settings, written)
    assert CompareOptions(settings, written, decode="text")


def test_an_endpoint_plays_the_same_deals(tmp_path: Path) -> None:
    with ModelStub(recorded) as stub:
        name = f"openai:model@{stub.url}"
        results = run_comparison(tmp_path, config("tic_tac_toe"), name, "first", num_episodes=2)
    first, second = ([row for row in results["episodes"] if row["agent"] == one] for one in (name, "first"))
    assert [(row["seed"], row["seat"]) for row in first] == [(row["seed"], row["seat"]) for row in second]
    assert all(row["conversation"] for row in first)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--compare random", "takes two agents or more, not 1"),
        ("--compare random random", "names 'random' twice"),
        ("--compare random frist", "there is no such run, and no such agent"),
        ("--compare random first --exact", "--exact does not go with --compare"),
        ("--compare random first --detect 0", "--detect must be above 0"),
        ("--compare random first --env trace", "--compare is for games"),
        ("--compare random first --output a.txt", "--output must end in .json"),
        ("--agent random --until_clear", "--until_clear is for --compare"),
    ],
)
def test_wrong_options_are_refused(arguments: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", *arguments.split()]) == 2
    assert message in capsys.readouterr().err


def test_a_command_line_prints_tables(here: Path, capsys: Any) -> None:
    command = ["eval", "--compare", "random", "first", "mcts:2", "--game", "kuhn_poker"]
    assert main([*command, "--num_episodes", "4"]) == 0
    shown = capsys.readouterr().out
    for text in ("scores on kuhn_poker against random", "exact", "random - first", "+0.1250"):
        assert text in shown
    assert list(here.glob("runs/compare-random-first-mcts-2-kuhn_poker-random.json"))
