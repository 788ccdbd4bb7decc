"""The examples of libraries that have environments of their own run as scripts and print what is true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.examples.test_examples import output


@pytest.mark.slow
def test_rllib_learns_behind_the_mask(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    run = output("rllib_ppo.py", tmp_path)
    scores = [float(score) for score in re.findall(r"iteration \d+: score (\d\.\d+)", run)]
    # Random play scores 0.5 over both seats, and the best response 0.591. Five iterations are some
    # 2500 games: error 0.004.
    assert len(scores) == 15 and 0.53 < sum(scores[-5:]) / 5 < 0.61
