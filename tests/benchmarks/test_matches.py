"""The benchmark of opponents that play each other."""

from __future__ import annotations

import pytest

from benchmarks import matches
from benchmarks.matches import Played, Tally, play_game, restore, summarise
from task_gym.stats import bound_mean


def test_figures_are_of_pairs() -> None:
    # Pairs: 1 and 0, 1 and 1, 0.5 and 0: means 0.5, 1 and 0.25, whose mean is 7/12.
    scores = [1.0, 0.0, 1.0, 1.0, 0.5, 0.0]
    tally = Tally()
    tally.add(Played(score, (10, 5), (1.0, 2.0)) for score in scores)
    row = summarise(tally)
    assert row["score"] == round(7 / 12, 4) and row["games"] == 6 and row["draws"] == 1
    assert row["seats"] == [round(2.5 / 3, 4), round(1 / 3, 4)]
    assert [row["low"], row["high"]] == pytest.approx(bound_mean([0.5, 1, 0.25], (0, 1)), abs=1e-4)
    low, high = bound_mean([0.5, 1, 0.25], (0, 1), 0.9)
    assert row["equal_within"] == pytest.approx(max(0.5 - low, high - 0.5), abs=1e-4)
    assert restore(row) == tally
    # 6 seconds of 60 moves beside 12 seconds of 30.
    assert (row["seconds"], row["times_cheaper"]) == ([0.1, 0.4], 4.0)


def test_the_stronger_search_wins_and_is_seated_as_said() -> None:
    strong, weak = "mcts:200x20", "mcts:2"
    config = 0
    for seat in (0, 1):
        played = play_game("clobber", config, (strong, weak), number=3, seat=seat)
        assert played.score == 1.0 and played.seconds[0] > played.seconds[1]
        # The first seat moves first, and the winner of clobber moves last.
        assert played.moves[0] - played.moves[1] == (1 if seat == 0 else 0)
        assert play_game("clobber", config, (weak, strong), number=3, seat=1 - seat).score == 0.0


def test_seconds_are_of_a_machine_and_games_are_not() -> None:
    match = {"game": "go", "params": {}, "opponents": ["mcts", "first"], "seed": 0}
    one, other = ({"machine": {"cpu": "x", "cores": cores}} for cores in (1, 2))
    assert matches.is_same_match(match | one | {"games": 4}, match)
    states = match | {"positions": 8}
    assert matches.is_same_match(states | one, states | one) and not matches.is_same_match(states, match)
    assert not matches.is_same_match(states | one, states | other)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        *(
            (f"othello mcts:2 random --{more}", "--games is even and at least 4")
            for more in ("games 5", "games 2", "seed -1", "processes 0")
        ),
        ("othello mcts:2 random --continue", "name it by --keep or --out, without --positions"),
        ("othello mcts:2 random mcts:1", "mcts:SIMS or mcts:SIMSxROLLOUTS"),
        ("hearts mcts:2 random", "hearts has 4 players; two opponents meet in games of two"),
    ],
)
def test_wrong_arguments_are_refused_before_a_game(
    argv: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        matches.main(argv.split())
    assert message in capsys.readouterr().err
