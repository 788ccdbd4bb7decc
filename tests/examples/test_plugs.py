"""The examples of libraries that have environments of their own run as scripts and print what is true."""

from __future__ import annotations

import re

import pytest

from tests.examples.test_examples import example, run

__all__ = ["run"]

pytestmark = pytest.mark.launch


@example("openenv_play.py", "openenv")
def test_openenv_plays_by_the_mask(run: str) -> None:
    assert run.startswith("action: 0 was given, legal: 1, 2\n")
    # Two random players score 0.5 over both seats. With some 4 of 26 chips per
    # game, the error is 4 / 26 / 10.
    match = re.search(r"100 games, mean score (0\.\d+), 0 illegal actions", run)
    assert match and float(match[1]) == pytest.approx(0.5, abs=0.06)


@example("rllib_ppo.py", "ray")
def test_rllib_learns_behind_the_mask(run: str) -> None:
    scores = [float(score) for score in re.findall(r"iteration \d+: score (\d\.\d+)", run)]
    # Random play scores 0.5 over both seats, and the best response 0.591. Five iterations are some
    # 2500 games: error 0.004.
    assert len(scores) == 15 and 0.53 < sum(scores[-5:]) / 5 < 0.61


@example("tianshou_random.py", "tianshou")
def test_tianshou_plays_by_the_mask(run: str) -> None:
    match = re.search(r"500 games, (\d+) moves, (\d\.\d+) legal of 3 actions", run)
    # The mask never allows a fold before a bet, and a third raise is never legal.
    assert match and int(match[1]) > 1000 and 2 <= float(match[2]) < 3
    first, second = (float(chips) for chips in re.findall(r"[+-]\d+\.\d\d", run))
    assert first == -second and abs(first) < 1  # a zero-sum game


@example("torchrl_masked.py", "torchrl")
def test_torchrl_learns_behind_the_mask(run: str) -> None:
    # As cleanrl_ppo.py: 0.5 for random play, 0.591 for the best response.
    first, last = (float(score) for score in re.findall(r"five(?: updates)? (\d\.\d+)", run))
    assert first == pytest.approx(0.51, abs=0.03) and 0.53 < last < 0.61


@example("trl_grpo.py", "trl")
def test_trl_makes_a_step(run: str) -> None:
    assert re.search(r"^1 step, mean reward -?\d\.\d+$", run, re.M)
    assert "\naction: 7 was given, legal: 0, 1\n" in run
    # The opponent passes to the bet: 1 chip of -2 to 2 scores 0.75, and the illegal action cost 0.01.
    assert run.endswith("reward 0.74\n")


@example("verifiers_eval.py", "verifiers")
def test_verifiers_evaluates(run: str) -> None:
    # Always to pass loses the ante to a bet, half of the time, and else meets a showdown worth 0: -1/2, which
    # scores 0.375. One game's standard deviation is 0.22, so 0.05 over 20 games; four of these are 0.2.
    match = re.search(r"20 games, mean reward (0\.\d+)\n0 illegal actions\n", run)
    assert match and float(match[1]) == pytest.approx(0.375, abs=0.2)


@example("skrl_ppo.py", "skrl")
def test_skrl_learns_behind_the_mask(run: str) -> None:
    # Random play scores 0.5 over both seats, the best response (0.5 + 0.4167) / 2 chips of 4, which is 0.615.
    match = re.search(r"(\d+) games, mean score (0\.\d+), 0 illegal actions", run)
    assert match and int(match[1]) >= 1000 and 0.55 < float(match[2]) < 0.65


@example("agilerl_ippo.py", "agilerl")
def test_agilerl_plays_by_the_mask(run: str) -> None:
    match = re.search(r"200 games, mean scores (0\.\d+) and (0\.\d+), 0 illegal actions", run)
    assert match and float(match[1]) + float(match[2]) == pytest.approx(1.0, abs=0.002)  # a zero-sum game


@example("minari_record.py", "minari")
def test_minari_keeps_infos(run: str) -> None:
    assert "20 games, scores and rewards agree: True\n" in run


@example("ray_tune.py", "ray")
def test_ray_tune_finds_the_rate_that_learns(run: str) -> None:
    # Random play has none of the best response's gain; twelve steps at a rate of 1e-5 change little.
    small, large = (float(share) for share in re.findall(r"share (-?\d\.\d+)", run))
    assert abs(small) < 0.3 < large and run.endswith("best: 0.004\n")


@example("gem_vector.py", "gem")
def test_gem_plays_a_vector_of_games(run: str) -> None:
    match = re.search(r"(\d+) games, mean score (0\.\d+)", run)
    assert match and int(match[1]) >= 400 and float(match[2]) == pytest.approx(0.5, abs=0.06)


@example("textarena_play.py", "textarena")
def test_agents_of_textarena_play_each_seat(run: str) -> None:
    paid = re.findall(r"\{0: (-?\d\.\d+), 1: (-?\d\.\d+)\}", run)
    assert len(paid) == 5 and all(float(one) == pytest.approx(-float(other)) for one, other in paid)


@example("reasoning_gym_mix.py", "reasoning_gym")
def test_reasoning_gym_scores_our_questions(run: str) -> None:
    lines = run.splitlines()
    assert len(lines) == 10 and {line.split()[0] for line in lines} == {"code_trace", "leg_counting"}
    assert all(line.endswith(" 1.0 0.0") for line in lines)


@example("smolagents_play.py", "smolagents")
def test_an_agent_of_smolagents_plays_by_a_tool(run: str) -> None:
    match = re.search(r"20 games, mean reward (0\.\d+)", run)
    assert match and float(match[1]) == pytest.approx(0.375, abs=0.2)  # as for verifiers: always to pass
