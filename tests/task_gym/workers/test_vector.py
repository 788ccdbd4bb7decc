"""Environments in workers as a vector of Gymnasium: what ``SyncVectorEnv`` does, played elsewhere."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("gymnasium", minversion="1.1")  # older ones have no modes of resetting

# isort: split
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from task_gym.errors import ArgumentError
from task_gym.processes import OFFERED
from task_gym.workers.vector import WorkerVectorEnv
from tests.task_gym.workers.toys import Walk

pytestmark = pytest.mark.skipif(not OFFERED, reason="no processes that can be forked")

TRAPPED = [3, 5, 7]


def show(env: Any, mode: str) -> list[Any]:
    """Returns all that a vector shows in two resets and twelve steps; no episode has more than five."""
    seen: list[Any] = [env.reset(seed=TRAPPED, options={"way": 1})]
    for step in range(12):
        seen.append(env.step(np.array([step % 3, 1, 2])))
        over = seen[-1][2] | seen[-1][3]
        if mode == "Disabled" and over.any():
            seen.append(env.reset(options={"reset_mask": over}))
    seen.append(env.reset(seed=11))
    for shown in seen:
        for info in (shown[-1], shown[-1].get("final_info", {})):
            info.pop("pid", None)
    return seen


@pytest.mark.launch
@pytest.mark.sample
@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_it_shows_what_a_vector_in_one_process_shows(mode: str, tmp_path: Path) -> None:
    """Also if a worker is killed on the way: the trap is in the episode of seed 5."""
    trap = tmp_path / "trap"
    trap.write_text("kill")
    env = WorkerVectorEnv([partial(Walk, trap)] * 3, workers=2, autoreset_mode=mode)
    record = show(env, mode)
    assert env.pool.take_counts().workers_lost == 1 and not trap.exists()
    expected = show(SyncVectorEnv([Walk] * 3, autoreset_mode=AutoresetMode(mode)), mode)
    np.testing.assert_equal(record, expected)
    assert env.action_masks().tolist() == [[True, True, True, False]] * 3
    env.close()


def test_it_goes_on_after_an_error() -> None:
    env, alone = WorkerVectorEnv([Walk] * 2, workers=1), SyncVectorEnv([Walk] * 2)
    with pytest.raises(ArgumentError, match="before the first reset"):
        env.get_attr("seat")
    env.reset(seed=1)
    with pytest.raises(ValueError, match=r"action 3 after \[\]"):
        env.step(np.array([1, 3]))
    infos = env.reset(seed=4)[1]
    assert os.getpid() not in infos.pop("pid")
    expected = alone.reset(seed=4)[1]
    expected.pop("pid")
    np.testing.assert_equal(infos, expected)
    assert env.get_attr("seat") == alone.get_attr("seat")
    with pytest.raises(ArgumentError, match=r"'length' was given, .*allowed: seat, seats"):
        env.get_attr("length")
    with pytest.raises(ArgumentError, match="seed: 1 were given, allowed: 2, one per environment"):
        env.reset(seed=[1])
    env.close()
    half = WorkerVectorEnv.__new__(WorkerVectorEnv)
    with pytest.raises(ArgumentError, match="env_fns: none were given"):
        half.__init__([], workers=1)  # type: ignore[misc]
    half.close()  # as Gymnasium does when it is deleted


@pytest.mark.parametrize("name", ["CartPole-v1", "Pendulum-v1"])  # actions are numbers, or arrays of them
def test_numbers_as_observations(name: str) -> None:
    makers = [partial(gym.make, name)] * 3
    env, alone = WorkerVectorEnv(makers, workers=1), SyncVectorEnv(makers)
    for vector in (env, alone):
        vector.action_space.seed(0)
    np.testing.assert_equal(env.reset(seed=2)[0], alone.reset(seed=2)[0])
    for _ in range(30):
        step, expected = (vector.step(vector.action_space.sample()) for vector in (env, alone))
        np.testing.assert_equal(step, expected)
    env.close()
