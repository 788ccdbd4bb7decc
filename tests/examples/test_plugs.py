"""The examples of libraries that have environments of their own run as scripts and print what is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.examples.test_examples import output


@pytest.mark.slow
def test_openenv_plays_by_the_mask(tmp_path: Path) -> None:
    pytest.importorskip("openenv", reason="OpenEnv is not installed")
    run = output("openenv_play.py", tmp_path)
    assert run.startswith("action: 0 was given, legal: 1, 2\n")
    # Two random players score 0.5 over both seats. With some 4 of 26 chips per
    # game, the error is 4 / 26 / 10.
    found = re.search(r"100 games, mean score (0\.\d+), 0 illegal actions", run)
    assert found and float(found[1]) == pytest.approx(0.5, abs=0.06)


@pytest.mark.slow
def test_rllib_learns_behind_the_mask(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    run = output("rllib_ppo.py", tmp_path)
    scores = [float(score) for score in re.findall(r"iteration \d+: score (\d\.\d+)", run)]
    # Random play scores 0.5 over both seats, and the best response 0.591. Five iterations are some
    # 2500 games: error 0.004.
    assert len(scores) == 15 and 0.53 < sum(scores[-5:]) / 5 < 0.61


@pytest.mark.slow
def test_tianshou_plays_by_the_mask(tmp_path: Path) -> None:
    pytest.importorskip("tianshou", reason="Tianshou is not installed")
    run = output("tianshou_random.py", tmp_path)
    found = re.search(r"500 games, (\d+) moves, (\d\.\d+) legal of 3 actions", run)
    # The mask never allows a fold before a bet, and a third raise is never legal.
    assert found and int(found[1]) > 1000 and 2 <= float(found[2]) < 3
    first, second = (float(chips) for chips in re.findall(r"[+-]\d+\.\d\d", run))
    assert first == -second and abs(first) < 1  # a zero-sum game


@pytest.mark.slow
def test_torchrl_learns_behind_the_mask(tmp_path: Path) -> None:
    pytest.importorskip("torchrl", reason="TorchRL is not installed")
    run = output("torchrl_masked.py", tmp_path)
    # As cleanrl_ppo.py: 0.5 for random play, 0.591 for the best response.
    first, last = (float(score) for score in re.findall(r"five(?: updates)? (\d\.\d+)", run))
    assert first == pytest.approx(0.51, abs=0.03) and 0.53 < last < 0.61


@pytest.mark.slow
def test_trl_makes_a_step(tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="TRL is not installed")
    run = output("trl_grpo.py", tmp_path)
    assert re.search(r"^1 step, mean reward -?\d\.\d+$", run, re.M)
    assert "\naction: 7 was given, legal: 0, 1\n" in run
    # The opponent passes to the bet: 1 chip of -2 to 2 scores 0.75, and the illegal action cost 0.01.
    assert run.endswith("reward 0.74\n")


@pytest.mark.slow
def test_verifiers_evaluates(tmp_path: Path) -> None:
    pytest.importorskip("verifiers", reason="verifiers is not installed")
    run = output("verifiers_eval.py", tmp_path)
    # Always to pass loses the ante to a bet, half of the time, and else meets a showdown worth 0: -1/2, which
    # scores 0.375. One game's standard deviation is 0.22, so 0.05 over 20 games; four of these are 0.2.
    found = re.search(r"20 games, mean reward (0\.\d+)\n0 illegal actions\n", run)
    assert found and float(found[1]) == pytest.approx(0.375, abs=0.2)
