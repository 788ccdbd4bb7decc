"""The environments pass Gymnasium's checker and are in its registry; RLlib's shows what is theirs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from game_gym.rllib import GameSpielRLlib
from tests.game_gym.play import LEDUC

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["GameSpiel-v0", "GameSpielText-v0"])
def test_the_checker_passes_without_a_warning(name: str) -> None:
    check_env(gym.make(name, task_ids=[(LEDUC, LEDUC + 9)], render_mode="rgb_array").unwrapped)


IMPORTS = """
import sys, gymnasium as gym, game_gym
print("pyspiel" in sys.modules, "torch" in sys.modules)
env = gym.make("GameSpiel-v0", task_id=200000000, render_mode="rgb_array")
print(env.reset(seed=1)[1]["game"])
import gamespiel
print("httpx" in sys.modules)
gym.make("GameSpiel-v0", task_id=0, backend="affinetes", base_url="http://127.0.0.1:1")
# affinetes patches asyncio.
print({"affinetes", "nest_asyncio", "httpx", "starlette", "uvicorn"} & set(sys.modules))
import trace_gym
gym.make("CodeTrace-v0", render_mode="rgb_array").close()
print("matplotlib" in sys.modules, "PIL" in sys.modules)
env.render()
# The font manager would first read every font of the machine.
print("PIL" in sys.modules, "matplotlib.font_manager" in sys.modules)
"""


@pytest.mark.launch
@pytest.mark.sample
def test_what_an_environment_costs_in_imports() -> None:
    command = [sys.executable, "-c", IMPORTS]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    lines = ["False False", "leduc_poker", "False", "set()", "False False", "True False"]
    assert run.stdout.splitlines() == lines


def test_a_batch_plays_what_its_environments_play() -> None:
    arguments = {"game": "kuhn_poker", "rules": False}
    batch = gym.make_vec("GameSpiel-v0", num_envs=3, **arguments)
    envs = [gym.make("GameSpiel-v0", **arguments) for _ in range(3)]
    texts, infos = batch.reset(seed=7)
    shown = [env.reset(seed=seed) for env, seed in zip(envs, (7, 8, 9), strict=True)]
    for _ in range(2):  # nobody is at the end before: each seat moves once
        assert list(texts) == [step[0] for step in shown]
        masks = infos["action_mask"]
        assert masks.dtype == np.int8 and masks.tolist() == [
            step[-1]["action_mask"].tolist() for step in shown
        ]
        assert infos["seed"].tolist() == [7, 8, 9]
        actions = masks.argmax(axis=1)
        texts, rewards, ended, _, infos = batch.step(actions)
        shown = [env.step(action) for env, action in zip(envs, actions.tolist(), strict=True)]
        assert (rewards.tolist(), ended.tolist()) == tuple([step[part] for step in shown] for part in (1, 2))
        if ended.any():
            break
    assert infos["_score"].tolist() == ended.tolist()


def test_the_layout_of_rllib() -> None:
    """Its masking modules read it. ``examples/rllib_ppo.py`` learns behind it."""
    env = GameSpielRLlib({"game": "leduc_poker"})
    seen, info = env.reset(seed=0)
    assert seen["observations"].shape == (30,) and seen["action_mask"].dtype == np.float32
    # Seat 0 moves first, and cannot fold when there is no bet.
    assert seen["action_mask"].tolist() == [0, 1, 1] and info["legal_actions"] == [1, 2]
    assert info["text"] == gym.make("GameSpiel-v0", game="leduc_poker").reset(seed=0)[0]
