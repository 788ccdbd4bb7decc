"""An address is one game to the last byte, in any process, whatever else uses random numbers."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.game_gym.play import DECLARED, LEDUC, episode, make

ROOT = Path(__file__).parent.parent.parent


def digest() -> str:
    """A hash of games of every kind."""
    played = [
        episode(make(game=game, seeding=seeding, opponent=opponent), seed)
        for game in DECLARED
        for seeding in ("openenv", "evaluate")
        for opponent in ("random", "mcts:30x2", "mcts-python:10x2", "open")
        for seed in (0, 5)
    ]
    env = make(task_ids=[(LEDUC, LEDUC + 999)])
    env.reset(seed=7)
    played += [[env.reset()[0]] for _ in range(5)]
    return hashlib.sha256(json.dumps(played).encode()).hexdigest()


def test_two_processes_play_the_same_bytes() -> None:
    script = "from tests.game_gym.test_determinism import digest; print(digest())"
    seen = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("1", "2")
    }
    assert seen == {digest()}


@pytest.mark.parametrize("opponent", ["random", "mcts:30x2", "mcts-python:10x2"])
def test_stray_random_numbers_change_nothing(opponent: str) -> None:
    def play(stray: bool) -> list[str]:
        env = make(game="leduc_poker", opponent=opponent)
        texts = []
        for seed in range(5):
            text, info = env.reset(seed=seed)
            over = False
            while not over:
                texts.append(text)
                if stray:
                    np.random.seed(seed)
                    np.random.rand(3)
                    random.seed(seed)
                text, _, over, _, info = env.step(info["legal_actions"][-1])
            texts.append(text)
        return texts

    assert play(stray=True) == play(stray=False)


def test_an_episode_does_not_depend_on_those_before_it() -> None:
    used = make(task_ids=[(LEDUC, LEDUC + 9)])
    for seed in range(10):
        used.reset(seed=seed, options={"opponent": ("first", "mcts:5x1", "open", "random")[seed % 4]})
        used.step(2)
    fresh = make(task_ids=[(LEDUC, LEDUC + 9)])
    assert episode(used, 77) == episode(fresh, 77)
