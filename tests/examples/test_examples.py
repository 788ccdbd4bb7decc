"""Every example runs as a script, from any folder, and prints what is true."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

#: An example has fewer lines than this.
LIMIT, LIMIT_OF_PLUGS = 40, 75  # some libraries want classes of their own around everything
SCRATCH = "ppo_from_scratch.py"  # a whole trainer; tests/examples/test_scratch.py compares it with this one


@pytest.fixture
def run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    registries: None,
    request: pytest.FixtureRequest,
) -> str:
    """Returns the output of the example that the test names, run in an empty folder.

    It is a process of its own if the test is marked so, or trains for long. Else it runs in this process,
    which has imported the libraries.
    """
    name, needs = request.param
    if needs is not None:
        pytest.importorskip(needs)
    marks = {mark.name for mark in request.node.iter_markers()}
    if "launch" in marks or ("trains" in marks and "sample" not in marks):
        command = [sys.executable, EXAMPLES / name]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stderr
        printed = done.stdout
    else:
        monkeypatch.chdir(tmp_path)
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        printed = capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []  # an example leaves no files behind
    return printed


def example(name: str, needs: str | None = None) -> pytest.MarkDecorator:
    """The mark of an example's test, and the library that is not in the pinned set of every environment."""
    return pytest.mark.parametrize("run", [(name, needs)], ids=[name], indirect=True)


def chips(text: str) -> list[float]:
    """Returns the means in "+0.12 chips per game", in order."""
    return [float(number) for number in re.findall(r"([+-]\d+\.\d+) chips per game", text)]


def test_every_example_is_covered_and_short() -> None:
    here, plugs = (
        re.findall(r'^@example\("(\w+\.py)"', file.read_text(encoding="utf-8"), re.MULTILINE)
        for file in (Path(__file__), Path(__file__).with_name("test_plugs.py"))
    )
    there = {path.name for path in EXAMPLES.iterdir()} - {"__pycache__", SCRATCH}
    assert sorted(there) == sorted(here + plugs)
    for name in here + plugs:
        lines = (EXAMPLES / name).read_text(encoding="utf-8").splitlines()
        assert len(lines) < (LIMIT_OF_PLUGS if name in plugs else LIMIT), f"{name} has {len(lines)} lines"
        assert lines[0].startswith('"""')


@pytest.mark.trains
@pytest.mark.sample
@example("random_play.py")
def test_random_play(run: str) -> None:
    # Seed 0 plays seat 0, which moves first.
    assert "You are Player 0." in run and "Betting: none" in run
    # A game is won by 1 chip (5/8 of all games) or by 2 chips (3/8). The standard deviation is 1.46 chips per
    # game, so 0.0146 over 10,000 games. Four of these are 0.058.
    first, second = chips(run)
    assert first == pytest.approx(1 / 8, abs=0.058) and second == pytest.approx(-1 / 8, abs=0.058)
    assert run.count("over 10,000 games") == 2
    assert "exactly +0.125" in run and "exactly -0.125" in run


@pytest.mark.trains
@pytest.mark.sample
@example("own_loss.py")
def test_own_loss(run: str) -> None:
    # A ratio of 1.1 or 0.9 has a squared logarithm of about 0.01.
    assert 1e-4 < float(re.findall(r"squared step: ([0-9.]+)", run)[0]) < 0.5


@pytest.mark.trains
@pytest.mark.sample
@example("own_opponent.py")
def test_own_opponent(run: str) -> None:
    # At most 2 chips per game, so a standard error of at most 0.0224 over 8,000 games. Four of these: 0.09.
    always, after_a_pass = chips(run)
    assert always == pytest.approx(0, abs=0.09) and after_a_pass == pytest.approx(1 / 3, abs=0.09)
    assert run.count("against 'honest'") == 2


@example("own_game.py")
def test_own_game(run: str) -> None:
    # 1 ^ 2 ^ 3 = 0: who moves first loses against a perfect player. Six moves: 1 + 2 + 3 ways to take sticks.
    assert "Current State:\n|\n||\n|||\n" in run
    assert len(re.findall(r"^  \d+ -> ", run, re.M)) == 6
    assert run.endswith("seat 0: 0 of 20 games won\nseat 1: 20 of 20 games won\n")


@example("pettingzoo_play.py", "pettingzoo")
def test_pettingzoo(run: str) -> None:
    # The chips of two players sum to zero, and so do the scores of goofspiel around 1/2.
    leduc = [float(chips) for chips in re.findall(r"'player_\d': (-?[\d.]+)", run.splitlines()[0])]
    assert len(leduc) == 2 and sum(leduc) == 0 and leduc[0] != 0
    match = re.search(r"goofspiel took 7 steps, scores: {'player_0': ([\d.]+), 'player_1': ([\d.]+)}", run)
    assert match and float(match[1]) + float(match[2]) == 1  # the eighth card is the only one left
    assert "Game over: goofspiel\nYou were Player 0." in run


@pytest.mark.trains
@example("cleanrl_ppo.py")
def test_cleanrl_learns_behind_the_mask(run: str) -> None:
    # A random player scores 0.5 in a game that is symmetric over the two seats. The best response earns
    # 2.3736 chips of at most 13: 0.5 + 2.3736 / 26 = 0.591. Five updates are some 1200 games: error 0.005.
    first, last = (float(score) for score in re.findall(r"five(?: updates)? (\d\.\d+)", run))
    assert first == pytest.approx(0.51, abs=0.03) and 0.53 < last < 0.61


@pytest.mark.trains
@example("self_play_open.py")
def test_self_play_approaches_the_equilibrium(run: str) -> None:
    rows = re.findall(r"(\d+) games: exploitability ([\d.]+), value ([+-][\d.]+)", run)
    assert [int(games) for games, _, _ in rows] == list(range(0, 30_001, 5000))
    # Uniform play: NashConv 11/12, and 1/8 for seat 0. At the equilibrium: 0 and -1/18.
    assert rows[0][1:] == ("0.458", "+0.125")
    assert float(rows[-1][1]) < 0.458 / 4
    assert float(rows[-1][2]) == pytest.approx(-1 / 18, abs=0.04)
    bets = {
        (card, move): float(share)
        for card, move, share in re.findall(r"card: (\w) Betting: Player 0 (\w+) -> bets ([\d.]+)", run)
    }
    # Kuhn (1950): seat 1 always bets with K, and with probability 1/3 bluffs with J and calls with Q.
    equilibrium = {
        ("J", "pass"): 1 / 3, ("Q", "pass"): 0, ("K", "pass"): 1,
        ("J", "bet"): 0, ("Q", "bet"): 1 / 3, ("K", "bet"): 1,
    }  # fmt: skip
    assert bets == pytest.approx(equilibrium, abs=0.25)


@pytest.mark.launch
@pytest.mark.sample
@example("trace_scores.py")
def test_trace_scores(run: str) -> None:
    truth = run.split("The true output:\n\n")[1].split("\n\n")[0].splitlines()
    assert [line.startswith("__DBG_") for line in truth] == [True, True, True, False]
    scores = {
        name: [float(score) for score in row.split()]
        for name, row in re.findall(r"^([a-z ]+?)  +((?:\d\.\d{3} *){3})$", run, re.M)
    }
    # "lines" with 4 lines, 3 of them debug lines: the mean of right lines from the first on and debug lines.
    assert scores == {
        "the truth": [1, 1, 1],
        "in a code fence": [1, 1, 1],
        "in upper case": [1, 0, 0],
        "first half": [0, 0, 0.583],  # (2/4 + 2/3) / 2
        "last line wrong": [0, 0, 0.875],  # (3/4 + 3/3) / 2
        "first line wrong": [0, 0, 0.333],  # (0/4 + 2/3) / 2
        "nothing": [0, 0, 0],
    }


@pytest.mark.trains
@pytest.mark.sample
@example("position_scores.py")
def test_position_scores(run: str) -> None:
    # The seat has the queen and cannot fold; the last legal id of a reply counts, and the name of an action.
    assert "'0' scores 0.000" in run and "'no idea' scores 0.000" in run and "'2' scores 1.000" in run
    assert re.search(r"'1' scores (0\.\d+)\n'<think>.* I call.' scores \1\n", run)
    rows = re.findall(r"^(\w+) +(\d\.\d+) +(\d\.\d+) +(\d\.\d+) +(\d\.\d+)$", run, re.M)
    for name, *means in rows:
        best, first, last, zero = map(float, means)
        assert best == 1 and zero < min(first, last) < 1, name  # 0 is not always legal
    assert [name for name, *_ in rows] == ["leduc_poker", "hex"]


@pytest.mark.trains
@example("stable_baselines3_ppo.py")
def test_ppo_learns_behind_the_mask_of_its_observation(run: str) -> None:
    # As with CleanRL: 0.5 for random play, 0.591 for the best response. A thousand games: error 0.006.
    untrained, trained = (float(score) for score in re.findall(r"score (\d\.\d+)", run))
    assert untrained == pytest.approx(0.5, abs=0.04) and 0.53 < trained < 0.62


@pytest.mark.trains
@example("maskable_ppo.py")
def test_maskable_ppo_learns(run: str) -> None:
    untrained, trained, best = chips(run)
    # Random against random is worth 0, and 2.37 = (2.0875 + 2.6597) / 2.
    assert untrained == pytest.approx(0, abs=0.6) and best == 2.37
    assert 1.2 < trained < 2.37 + 0.6
    # Ten rollouts of 16 environments with 128 decisions each.
    assert "trained on 20,480 decisions" in run
