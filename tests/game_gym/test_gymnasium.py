"""The environments pass Gymnasium's checker and are in its registry."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

from task_gym.errors import MissingPackageError
from task_gym.picture import picture
from tests.game_gym.play import DECLARED, LEDUC

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("name", ["GameSpiel-v0", "GameSpielText-v0"])
@pytest.mark.parametrize(
    "arguments",
    [{"game": game} for game in DECLARED]
    + [
        {"task_ids": [(LEDUC, LEDUC + 9)], "render_mode": "ansi"},
        {"task_id": LEDUC, "render_mode": "rgb_array"},
        {"game": "kuhn_poker", "opponent": "open", "max_turns": 2, "reward": "upstream"},
        {"task_id": LEDUC, "opponent": "mcts:10x1", "seeding": "evaluate", "illegal": "forfeit"},
    ],
)
def test_the_checker_passes_without_a_warning(name: str, arguments: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gym.make(name, **arguments).unwrapped)


REGISTERING = """
import sys, gymnasium as gym, game_gym
print("pyspiel" in sys.modules, "torch" in sys.modules)
print(gym.make("GameSpiel-v0", task_id=200000000).reset(seed=1)[1]["game"])
"""
WITHOUT_AN_IMPORT = """
import gymnasium as gym
print(gym.make("game_gym:GameSpiel-v0", task_id=200000000).reset(seed=1)[1]["game"])
"""
PICTURE = """
import sys, gymnasium as gym, game_gym, trace_gym
env = gym.make("GameSpiel-v0", task_id=200000000, render_mode="rgb_array")
env.reset(seed=1)
gym.make("CodeTrace-v0", render_mode="rgb_array").close()
print("matplotlib" in sys.modules, "PIL" in sys.modules)
env.render()
# The font manager would first read every font of the machine.
print("PIL" in sys.modules, "matplotlib.font_manager" in sys.modules)
"""


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        (REGISTERING, "False False\nleduc_poker\n"),
        (WITHOUT_AN_IMPORT, "leduc_poker\n"),
        (PICTURE, "False False\nTrue False\n"),
    ],
)
def test_what_an_environment_costs_in_imports(script: str, printed: str) -> None:
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == printed


@pytest.mark.parametrize("name", ["GameSpiel-v0", "GameSpielText-v0"])
def test_pictures_show_the_observation(name: str) -> None:
    env = gym.make(name, task_id=LEDUC, render_mode="rgb_array")
    with pytest.raises(gym.error.ResetNeeded):
        env.render()
    assert (env.unwrapped.render() == 255).all()
    text, info = env.reset(seed=1)
    assert (env.render() == picture(text)).all()
    over = False
    while not over:
        action = info["legal_actions"][0]
        text, _, over, _, info = env.step(str(action) if name == "GameSpielText-v0" else action)
        assert (env.render() == picture(text)).all()


def test_render_without_a_mode_says_how_to_give_one() -> None:
    env = gym.make("GameSpiel-v0", task_id=LEDUC)
    env.reset(seed=1)
    for shown in (env, env.unwrapped):
        with pytest.warns(UserWarning, match=r'gym.make\("GameSpiel-v0", render_mode="ansi"\)'):
            assert shown.render() is None


def test_a_batch_needs_gymnasiums_modes_of_resetting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gymnasium 1.0 has none."""
    monkeypatch.delattr(gym.vector, "AutoresetMode", raising=False)
    monkeypatch.delitem(sys.modules, "game_gym.vector", raising=False)
    with pytest.raises(MissingPackageError, match=r"needs Gymnasium 1\.1 .* vectorization_mode='sync'"):
        gym.make_vec("GameSpiel-v0", num_envs=2, game="hex")
    envs = gym.make_vec("GameSpiel-v0", num_envs=2, game="hex", vectorization_mode="sync")
    assert list(envs.reset(seed=1)[1]["game"]) == ["hex", "hex"]
