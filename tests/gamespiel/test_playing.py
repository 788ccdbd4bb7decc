"""A run's environment and policy from Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import gamespiel
from gamespiel.agents.runs.checkpoint import CheckpointError
from gamespiel.config import ConfigError, InvalidValueError, UnknownKeyError
from task_gym.errors import OpponentError
from tests.gamespiel.runs import small, train_quietly


def test_a_run_is_played(finished: Path) -> None:
    env = gamespiel.make_env(finished, opponent="first")
    policy = gamespiel.load_policy(finished, device="cpu")
    observation, info = env.reset(seed=7)
    assert (info["game"], info["opponent"]) == ("kuhn_poker", "first")
    while "result" not in info:
        (probabilities,) = policy.distribution([observation], [info["legal_actions"]])
        action, _ = policy.predict(observation, action_masks=info["action_mask"], deterministic=True)
        assert int(action) == info["legal_actions"][int(np.argmax(probabilities))]
        observation, _, _, _, info = env.step(action)
    assert info["result"] in ("win", "loss")


def test_each_checkpoint_is_its_own_policy(finished: Path) -> None:
    shown, info = gamespiel.make_env(finished).reset(seed=7)
    folders = [finished, finished / "checkpoints" / "step-000000", finished / "checkpoints" / "step-000012"]
    newest, first, last = (
        gamespiel.load_policy(folder, device="cpu").distribution([shown], [info["legal_actions"]])[0]
        for folder in folders
    )
    assert np.array_equal(newest, last) and not np.array_equal(first, last)


def test_another_environment_has_other_actions(finished: Path) -> None:
    env = gym.make("GameSpiel-v0", game="leduc_poker", rules=False)
    policy = gamespiel.load_policy(finished, env, device="cpu")
    observation, info = env.reset(seed=7)
    action, _ = policy.predict(observation, action_masks=info["action_mask"])
    assert int(action) in info["legal_actions"]


def test_a_run_is_played_in_another_game(finished: Path) -> None:
    """The game is replaced, whatever key chose the run's game."""
    for changes, game in (({"game": "leduc_poker"}, "leduc_poker"), ({"task_id": 600000000}, "hex")):
        assert gamespiel.make_env(finished, **changes).reset(seed=0)[1]["game"] == game
    with pytest.raises(InvalidValueError, match=r"env\.rules must be true or false, not 'no'"):
        gamespiel.make_env(finished, rules="no")


def test_a_run_that_answers_by_name(tmp_path: Path) -> None:
    run = train_quietly(
        small(tmp_path / "run", env__answer="name", ppo__num_train_steps="1", run__eval_games="0")
    )
    env, policy = gamespiel.make_env(run), gamespiel.load_policy(run, device="cpu")
    observation, info = env.reset(seed=7)
    action, _ = policy.predict(observation, action_masks=info["action_mask"])
    assert int(action) in info["legal_actions"]


def test_unknown_keys_opponents_and_runs_are_named_errors(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownKeyError, match=r"'env\.oponent'; did you mean 'env\.opponent'"):
        gamespiel.make_env(finished, oponent="first")
    with pytest.raises(OpponentError, match="did you mean 'first'"):
        gamespiel.make_env(finished, opponent="frist")
    with pytest.raises(ConfigError, match="no such run or checkpoint folder"):
        gamespiel.make_env(tmp_path / "no")
    with pytest.raises(CheckpointError, match="which holds none"):
        gamespiel.load_policy(tmp_path)
    with pytest.raises(AttributeError, match="has no attribute 'load_polcy'"):
        gamespiel.load_polcy  # noqa: B018


def test_importing_gamespiel_loads_no_learning_library() -> None:
    code = (
        "import sys, gamespiel; assert not {'torch', 'transformers', 'gamespiel.playing'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_importing_the_learner_loads_no_library_of_models() -> None:
    """Stable-Baselines3 and PyTorch are what it is made of; the others take twice as long as both."""
    heavy = (
        "transformers", "peft", "bitsandbytes", "accelerate", "datasets", "pandas", "matplotlib", "scipy",
        "sympy", "tensorboard", "torch._dynamo", "torch.distributed.tensor", "torch.onnx", "pyspiel",
    )  # fmt: skip
    code = f"import sys, gamespiel.agents.ppo; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
