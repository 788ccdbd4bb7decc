"""Tests that an address gives one episode to the last byte, in any process, despite other random numbers."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from tests.trace_gym.play import IDS, episode
from tests.trace_gym.rows import PATH

ROOT = Path(__file__).parents[3]

PLANS: list[dict[str, Any]] = [
    {"task_ids": [(0, 10**11 - 1)], "level": 2},
    {"task_ids": [(0, 10**11 - 1)], "family": "sorting", "level": 1},
    {"task_ids": [(0, 9)], "source": str(PATH.relative_to(ROOT))},
]
"""Task sets: the builtin generator's, and the sound and unsound rows of a file."""


def digests() -> dict[str, str]:
    """Returns a hash for every id and task set."""
    return {
        f"{name} {plan}": hashlib.sha256(json.dumps(play(name, **plan)).encode()).hexdigest()
        for name in IDS
        for plan in PLANS
    }


def play(name: str, scatter: Any = lambda: None, **arguments: Any) -> list[Any]:
    """Plays two episodes, one seeded and one drawn."""
    env = gym.make(name, **arguments).unwrapped
    played = []
    for seed in (7, None):
        scatter()
        played.append(episode(env, seed))
        scatter()
    env.close()
    return played


def test_two_processes_play_the_same_bytes() -> None:
    script = (
        "import json; from tests.trace_gym.envs.test_determinism import digests; print(json.dumps(digests()))"
    )
    # Sets of strings have another order there than here.
    hash_seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    child = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    theirs, ours = json.loads(child.stdout), digests()
    assert theirs == ours
    assert len(set(ours.values())) == len(IDS) * len(PLANS)  # no two play the same


@pytest.mark.parametrize("name", IDS)
def test_stray_random_numbers_change_nothing(name: str) -> None:
    def scatter() -> None:
        np.random.seed(random.randrange(9))
        np.random.rand(3)
        random.random()
        random.seed(5)

    assert play(name, scatter, **PLANS[0]) == play(name, **PLANS[0])


@pytest.mark.parametrize("name", IDS)
def test_a_seed_is_played_itself_and_draws_one_task(name: str) -> None:
    one, other = (gym.make(name, level=1).unwrapped for _ in range(2))
    _, info = one.reset(seed=11)
    one.step(0 if name == "CodeTraceChoice-v0" else "x")
    assert info["seed"] == 11
    other.reset(seed=12)
    assert other.reset(seed=11)[1]["task_id"] == info["task_id"]
    assert other.reset()[1]["task_id"] == one.reset()[1]["task_id"]
    one.close()
    other.close()
