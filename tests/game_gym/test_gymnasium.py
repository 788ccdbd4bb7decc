"""What Gymnasium expects of an environment: its checker, its vector environments, its registry."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from tests.game_gym.play import DECLARED, LEDUC, episode, make

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("name", ["GameSpiel-v0", "GameSpielText-v0"])
@pytest.mark.parametrize(
    "arguments",
    [{"game": game} for game in DECLARED]
    + [
        {"task_ids": [(LEDUC, LEDUC + 9)], "render_mode": "ansi"},
        {"game": "kuhn_poker", "opponent": "open", "max_turns": 2, "reward": "upstream"},
        {"task_id": LEDUC, "opponent": "mcts:10x1", "seeding": "evaluate", "illegal": "forfeit"},
    ],
)
def test_the_checker_passes_without_a_warning(name: str, arguments: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(name, **arguments).unwrapped)


def test_the_registry_makes_it_without_an_import() -> None:
    script = (
        "import gymnasium as gym; env = gym.make('game_gym:GameSpiel-v0', task_id=200000000); "
        "print(env.reset(seed=1)[1]['game'])"
    )
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == "leduc_poker\n"


def test_registering_costs_no_import_of_openspiel() -> None:
    script = "import sys, game_gym; print('pyspiel' in sys.modules, 'torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == "False False\n"


def test_texts_are_not_shared_in_memory() -> None:
    with pytest.raises(ValueError, match="shared_memory=False"):
        gym.vector.AsyncVectorEnv([lambda: make(game="leduc_poker")])


def test_asynchronous_vector_environments_play_the_same_games() -> None:
    vector = gym.vector.AsyncVectorEnv(
        [lambda: gym.make("game_gym:GameSpiel-v0", game="leduc_poker")] * 2, shared_memory=False
    )
    try:
        texts, infos = vector.reset(seed=[4, 5])
        for index, seed in enumerate((4, 5)):
            assert texts[index] == episode(make(game="leduc_poker"), seed)[0][0]
            assert infos["seat"][index] == seed % 2
        assert infos["action_mask"].shape == (2, 3)
        assert all(text in vector.single_observation_space for text in texts)
        for _ in range(20):
            actions = [int(np.flatnonzero(mask)[0]) if mask.any() else 0 for mask in infos["action_mask"]]
            _, _, _, truncated, infos = vector.step(actions)
        assert not truncated.any()
    finally:
        vector.close()


def test_synchronous_vector_environments_report_endings() -> None:
    vector = gym.make_vec("GameSpiel-v0", num_envs=3, vectorization_mode="sync", game="kuhn_poker")
    _, infos = vector.reset(seed=1)
    ended = 0
    for _ in range(30):
        actions = [int(np.flatnonzero(mask)[0]) if mask.any() else 0 for mask in infos["action_mask"]]
        _, rewards, terminated, _, infos = vector.step(np.array(actions))
        if terminated.any():
            ended += terminated.sum()
            assert np.array_equal(infos["score"][terminated], rewards[terminated])
    assert ended > 10
