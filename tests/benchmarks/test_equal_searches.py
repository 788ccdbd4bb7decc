"""The benchmark of searches that play each other."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from benchmarks import equal_searches
from benchmarks.equal_searches import Played, Search, play_game, read_search, scale_down, summarise
from game_gym.games import DECLARED


@pytest.mark.parametrize(
    ("text", "search"),
    [
        ("400", Search(400, 1)),
        ("400x3", Search(400, 3)),
        ("400@0.7", Search(400, 1, 0.7)),
        ("400x2@puct:5", Search(400, 2, 5.0, puct=True)),
    ],
)
def test_a_search_is_read_and_written(text: str, search: Search) -> None:
    assert read_search(text) == search
    assert read_search(str(search)) == search


@pytest.mark.parametrize("text", ["", "1", "400x0", "400@", "400@-1", "400@nan", "400@inf", "400@ucb:1", "many"])
def test_what_is_no_search_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="allowed: SIMS, SIMSxROLLOUTS and either with"):
        read_search(text)


def test_a_scaled_budget_has_fewer_simulations() -> None:
    assert scale_down("othello", 1) == Search(1000, 20)
    assert scale_down("othello", 20) == Search(50, 20)
    assert scale_down("othello", 10_000) == Search(2, 20)  # the fewest that leave a move to choose


def test_figures_are_of_pairs() -> None:
    # Pairs: 1 and 0, 1 and 1, 0.5 and 0: means 0.5, 1 and 0.25, whose mean is 7/12.
    scores = [1.0, 0.0, 1.0, 1.0, 0.5, 0.0]
    row = summarise([Played(score, (10, 5), (1.0, 2.0)) for score in scores])
    assert row["score"] == round(7 / 12, 4) and row["games"] == 6 and row["draws"] == 1
    assert row["seats"] == [round(2.5 / 3, 4), round(1 / 3, 4)]
    # Standard deviation sqrt(((1/12)^2 + (5/12)^2 + (4/12)^2) / 2) = sqrt(42/288); Student's t at 2: 4.302653.
    half = 4.302653 * (42 / 288) ** 0.5 / 3**0.5
    assert [row["low"], row["high"]] == pytest.approx([7 / 12 - half, 7 / 12 + half], abs=1e-4)
    # 6 seconds of 60 moves beside 12 seconds of 30.
    assert (row["seconds"], row["reference_seconds"], row["times_cheaper"]) == (0.1, 0.4, 4.0)


def test_the_stronger_search_wins_and_is_seated_as_said() -> None:
    strong, weak = Search(200, 20), Search(2, 1)
    config = 0
    for seat in (0, 1):
        played = play_game("clobber", config, (strong, weak), number=3, seat=seat)
        assert played.score == 1.0 and played.seconds[0] > played.seconds[1]
        # The first seat moves first, and the winner of clobber moves last.
        assert played.moves[0] - played.moves[1] == (1 if seat == 0 else 0)
        assert play_game("clobber", config, (weak, strong), number=3, seat=1 - seat).score == 0.0


def test_games_follow_from_their_number() -> None:
    searches = Search(20, 1), Search(10, 2, 5.0, puct=True)
    first = play_game("backgammon", 0, (Search(4, 1), Search(2, 1)), number=1, seat=0)
    assert first.score in (0.0, 1.0)
    games = [play_game("othello", 0, searches, number, 0)[:2] for number in (5, 5, 6)]
    assert games[0] == games[1]


def test_rows_join_those_that_are_there(tmp_path: Path) -> None:
    place = ["--games", "4", "--scale", "1000", "--out", str(tmp_path / "all.json")]
    equal_searches.main(["leduc_poker", "--candidates", "2", "3", *place])
    found = equal_searches.main(["leduc_poker", "--candidates", "2", *place])
    assert [row["candidate"] for row in found["rows"]] == ["3x1", "2x1"]
    found = equal_searches.main(["leduc_poker", "--candidates", "2", "--seed", "1", *place])
    assert [(row["candidate"], row["seed"]) for row in found["rows"]] == [("3x1", 0), ("2x1", 0), ("2x1", 1)]
    assert {row["reference"] for row in found["rows"]} == {"3x200"}


@pytest.mark.parametrize("options", [["--games", "5"], ["--games", "2"], ["--scale", "0"], ["--processes", "0"]])
def test_wrong_numbers_are_refused(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        equal_searches.main(["othello", "--candidates", "2", *options])
    assert "--games is even and at least 4" in capsys.readouterr().err


def test_games_of_more_than_two_players_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert DECLARED["hearts"].budget is not None
    with pytest.raises(SystemExit):
        equal_searches.main(["hearts", "--candidates", "2"])
    assert "hearts has 4 players; two searches meet in games of two" in capsys.readouterr().err
