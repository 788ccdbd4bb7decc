"""Games in TRL: the contract of its ``environment_factory``. ``examples/trl_grpo.py`` makes a step."""

from __future__ import annotations

import inspect

import pytest

from game_gym.trl import GameSpielTRL
from task_gym.errors import EpisodeError


def test_a_game_by_calls() -> None:
    """Every public function but its own two is a tool for TRL."""
    functions = {name for name, _ in inspect.getmembers(GameSpielTRL, inspect.isfunction) if name[0] != "_"}
    assert functions == {"reset", "get_reward", "play"}
    env = GameSpielTRL(game="tic_tac_toe", opponent="first", rules=False)
    assert "You are Player 0." in env.reset(seed=0, prompt="another column")
    assert "x" in env.play(4)
    told = env.play(4)  # the mask in words: taken by then
    assert told.startswith("action: 4 was given, legal: 1, 2, 3") and "Legal Actions:" in told
    assert env.get_reward() == pytest.approx(-0.01)
    env.play(2)
    assert "Result: win" in env.play(6)
    assert env.get_reward() == pytest.approx(0.99)
    with pytest.raises(EpisodeError):
        env.play(1)
    env.reset(seed=1)
    assert env.get_reward() == 0
    # Tasks come from columns.
    env = GameSpielTRL(task_ids=[600_000_000, 200_000_000])
    assert "Game: hex" in env.reset(seed=1, task_id=600_000_000)
    assert "Game: leduc_poker" in env.reset(seed=1, task_id=200_000_000)


def test_a_game_that_is_over_at_its_beginning_is_paid_once() -> None:
    env = GameSpielTRL(game="euchre", rules=False)
    assert "Game over" in env.reset(seed=9)  # the partner plays alone
    assert env.get_reward() == 0.25
    assert "Game over" in env.play(0) and env.get_reward() == 0.25
