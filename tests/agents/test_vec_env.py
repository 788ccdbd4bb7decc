"""``TextVecEnv``: the behaviour that Stable-Baselines3 expects of a vector."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from sb3_contrib.common.maskable.utils import EXPECTED_METHOD_NAME, get_action_masks, is_masking_supported

from gamespiel.agents.rollout import ACTION_MASKS
from gamespiel.agents.vec_env import TextVecEnv
from tests.agents.toys import N_ACTIONS, TEXT, Bandit, Stairs


def first_legal(env: TextVecEnv) -> np.ndarray:
    return get_action_masks(env).argmax(-1)


def test_observations_are_an_array_of_texts() -> None:
    env = TextVecEnv([Stairs, Stairs, Stairs])
    env.seed(5)
    texts = env.reset()
    assert texts.shape == (3,) and texts.dtype == object
    assert texts.tolist() == [Stairs().reset(seed=seed)[0] for seed in (5, 6, 7)]  # SB3: seed + index
    assert env.observation_space == TEXT and env.num_envs == 3
    assert is_masking_supported(env) and get_action_masks(env).shape == (3, N_ACTIONS)
    assert ACTION_MASKS == EXPECTED_METHOD_NAME


def test_a_done_step() -> None:
    """infos[i] is the old episode's, reset_infos[i] and the observation are the new one's."""
    env = TextVecEnv([Stairs, Stairs])
    env.seed(0)
    env.reset()
    lengths = [env.envs[i].length for i in range(2)]
    assert lengths[0] != lengths[1]  # one ends while the other goes on
    first = int(np.argmin(lengths))
    for _ in range(min(lengths)):
        texts, rewards, dones, infos = env.step(first_legal(env))
    assert dones[first] and not dones[1 - first]
    assert infos[first]["turn"] == min(lengths) and env.reset_infos[first]["turn"] == 0
    assert f"played {'.' * min(lengths)}" in infos[first]["terminal_observation"]
    assert "played []" in texts[first]
    assert "terminal_observation" not in infos[1 - first]
    assert rewards.dtype == np.float32 and rewards.tolist() == [float(first == 0), float(first == 1)]
    assert infos[first]["TimeLimit.truncated"] is False
    cut = TextVecEnv([lambda: Stairs(max_turns=1)])
    cut.reset()
    _, _, dones, infos = cut.step(first_legal(cut))
    assert dones[0] and infos[0]["TimeLimit.truncated"] is True


def test_what_was_returned_stays_as_it_was() -> None:
    env = TextVecEnv([Stairs])
    env.seed(3)
    before = env.reset()
    kept = before.copy()
    _, _, _, infos = env.step(first_legal(env))
    infos[0]["turn"] = "changed by the caller"
    assert before.tolist() == kept.tolist()
    assert env.step(first_legal(env))[3][0]["turn"] == 2


def test_one_at_a_time() -> None:
    """The caller chooses the next seed; a finished environment waits for it."""
    env = TextVecEnv([Bandit, Bandit])
    text, info = env.reset_one(1, seed=11)
    assert text.startswith("choose\n") and info["game"] == "bandit"
    text, reward, terminated, truncated, info = env.step_one(1, 1)
    assert (text, reward, terminated, truncated) == ("over", 1.0, True, False)
    stairs = TextVecEnv([Stairs])
    assert stairs.reset_one(0, seed=9)[0] == stairs.reset_one(0, seed=9)[0] == Stairs().reset(seed=9)[0]


def test_options_reach_the_environment_once() -> None:
    class Told(Bandit):
        def reset(self, *, seed=None, options=None):  # type: ignore[no-untyped-def]
            _, info = super().reset(seed=seed)
            return f"told {options}", info

    env = TextVecEnv([Told, Told])
    assert env.reset_one(0, seed=1, options={"task_id": 4})[0] == "told {'task_id': 4}"
    env.set_options([{"task_id": 5}, {}])
    assert env.reset().tolist() == ["told {'task_id': 5}", "told None"]
    assert env.reset().tolist() == ["told None", "told None"]


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one environment, got none"):
        TextVecEnv([])
    one = Bandit()
    with pytest.raises(ValueError, match="an environment of its own"):
        TextVecEnv([lambda: one, lambda: one])
    with pytest.raises(ValueError, match="takes Text observations, got Box"):
        TextVecEnv([lambda: gym.make("CartPole-v1")])
    with pytest.raises(ValueError, match=r"differ in actions: Discrete\(3\) and Discrete\(124\)"):
        TextVecEnv([Bandit, Stairs])


def test_an_episode_that_is_over_at_once_is_passed_over_or_shown() -> None:
    class Sometimes(Stairs):
        """Every third episode has turns; the others are over at their reset."""

        begun = 0

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
            text, info = super().reset(seed=seed, options=options)
            self.begun += 1
            over = self.begun % 3 != 0
            return ("over", {**info, "result": "win", "score": 1.0}) if over else (text, info)

    env = TextVecEnv([Sometimes])
    assert env.reset_one(0, seed=5)[0] == "over"
    # The second is over, the third is not.
    assert env.reset()[0] != "over" and "result" not in env.reset_infos[0]
    assert env.envs[0].begun == 3  # type: ignore[attr-defined]


def test_a_backend_that_is_down_does_not_hang() -> None:
    class Down(Stairs):
        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, dict[str, Any]]:
            text, info = super().reset(seed=seed, options=options)
            return text, {**info, "result": "fault", "score": None, "fault": "it is gone"}

    with pytest.raises(RuntimeError, match=r"1000 episodes in a row .* result 'fault' \(it is gone\): exp"):
        TextVecEnv([Down]).reset()
