"""A run's environment and policy from Python, and what ``info`` says."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import gamespiel
from gamespiel.agents.runs.checkpoint import CheckpointError
from gamespiel.config import ConfigError, UnknownKeyError
from gamespiel.policy_opponent import FrozenPolicy

HEAVY = [
    "transformers", "peft", "bitsandbytes", "accelerate", "datasets", "pandas", "matplotlib", "scipy",
    "sympy", "tensorboard", "torch._dynamo", "torch.distributed.tensor", "torch.onnx", "pyspiel",
]  # fmt: skip
"""Libraries that take twice as long to import as those that the learner is made of."""


@pytest.mark.trains
@pytest.mark.sample
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


@pytest.mark.trains
@pytest.mark.sample
def test_a_run_is_played_in_another_game(finished: Path) -> None:
    """The game is replaced, whatever key chose the run's game; the policy has its own actions there."""
    for changes, game in (({"game": "leduc_poker"}, "leduc_poker"), ({"task_id": 600000000}, "hex")):
        assert gamespiel.make_env(finished, **changes).reset(seed=0)[1]["game"] == game
    env = gym.make("GameSpiel-v0", game="leduc_poker", rules=False)
    policy = gamespiel.load_policy(finished, env, device="cpu")
    observation, info = env.reset(seed=7)
    action, _ = policy.predict(observation, action_masks=info["action_mask"])
    assert int(action) in info["legal_actions"]


@pytest.mark.trains
@pytest.mark.sample
def test_unknown_keys_opponents_and_runs_are_named_errors(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownKeyError, match=r"'env\.oponent'; did you mean 'env\.opponent'"):
        gamespiel.make_env(finished, oponent="first")
    with pytest.raises(ConfigError, match="no such run or checkpoint folder"):
        gamespiel.make_env(tmp_path / "no")
    with pytest.raises(CheckpointError, match="which holds none"):
        gamespiel.load_policy(tmp_path)


@pytest.mark.trains
@pytest.mark.sample
def test_opponents_in_threads_load_their_policies_one_by_one(
    finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loading sets torch's seed and default type, which belong to all threads."""
    loading: list[Path] = []
    counts: list[int] = []

    def load(run: Path) -> object:
        loading.append(run)
        time.sleep(0.05)
        counts.append(len(loading))
        loading.remove(run)
        return object()

    monkeypatch.setattr("gamespiel.assembly.load_policy", load)
    policies = [FrozenPolicy(str(finished)) for _ in range(3)]
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(FrozenPolicy._load, policies))
    assert counts == [1, 1, 1]


@pytest.mark.launch
def test_the_learner_loads_nothing_else_of_pytorch_and_stable_baselines3() -> None:
    code = f"import sys, gamespiel.agents.ppo; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
