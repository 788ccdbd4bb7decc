"""The picture of self-play: numbers of a run that are known, and regret minimisation in a small game."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import self_play
from game_gym import exact
from tests.gamespiel.runs import small, train_quietly

SELF = {"env__opponent": "self", "run__eval_games": "0", "ppo__num_train_steps": "2", "run__exact_every": "1"}


def test_regret_minimisation_approaches_an_equilibrium() -> None:
    """In Kuhn poker, the first average policy is uniform, with 11/24."""
    found = self_play.regret_minimisation(exact.find_variant(game="kuhn_poker"), (1, 500))
    assert found[0] == [1, pytest.approx(11 / 24, abs=1e-4)]
    assert found[1][0] == 500 and found[1][1] < 0.02


@pytest.mark.trains
def test_a_picture_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = train_quietly(small(tmp_path / "run", **SELF))
    results = self_play.main([str(run), "--against_random", str(run), "--out", str(tmp_path / "out")])
    (summary,) = results["runs"]
    assert len(summary["curve"]) == 3 and summary["curve"][0][0] == 0
    assert summary["final"] == summary["curve"][-1][2] == results["against_random"]
    assert results["uniform"] == pytest.approx(11 / 24, abs=1e-4)
    assert (tmp_path / "out" / "self_play.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == results
