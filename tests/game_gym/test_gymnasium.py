"""What Gymnasium expects of an environment: its checker and its registry."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

from tests.game_gym.play import DECLARED, LEDUC

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
