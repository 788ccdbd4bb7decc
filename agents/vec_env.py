"""A vector of environments with text observations, for Stable-Baselines3."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from stable_baselines3.common.vec_env import DummyVecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnv, VecEnvStepReturn

MOST_PASSED_OVER = 1000
"""Episodes in a row that may be over at once: a tenth of euchre's are, and all if a backend is down."""

Step = tuple[str, float, bool, bool, dict[str, Any]]


class TextVecEnv(DummyVecEnv):
    """A ``DummyVecEnv`` for Text observations, returned as an object array of strings, shape (n_envs,).

    Stable-Baselines3's own vectors allocate numeric buffers by shape, and a Text space has no shape. ``step``
    resets finished environments as theirs do: ``infos[i]`` then belongs to the old episode and
    ``reset_infos[i]`` to the new one. With ``reset_one`` and ``step_one`` the caller resets, and chooses the
    next task.

    A game can be over before the agent's first turn. Stable-Baselines3 has no place for an episode without
    steps, so ``reset`` and ``step`` skip such episodes and draw again; ``reset_one`` returns them.

    Args:
        env_fns: Functions that each make a new environment.

    Raises:
        ValueError: no environments, one environment twice, or spaces that do not fit.
    """

    def __init__(self, env_fns: Sequence[Callable[[], gym.Env[Any, Any]]]) -> None:
        self.envs = [make() for make in env_fns]
        if not self.envs:
            raise ValueError("a vector needs at least one environment, got none")
        if len({id(env.unwrapped) for env in self.envs}) != len(self.envs):
            raise ValueError("each env_fn must make an environment of its own, but two returned the same")
        first = self.envs[0]
        for env in self.envs:
            if not isinstance(env.observation_space, gym.spaces.Text):
                raise ValueError(f"TextVecEnv takes Text observations, got {env.observation_space}")
            if env.action_space != first.action_space:
                raise ValueError(
                    f"environments differ in actions: {first.action_space} and {env.action_space}"
                )
        VecEnv.__init__(self, len(self.envs), first.observation_space, first.action_space)
        self.metadata = first.metadata
        self._texts = np.full(self.num_envs, "", dtype=object)

    def reset_one(
        self, index: int, seed: int, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begins an episode in one environment."""
        text, info = self.envs[index].reset(seed=seed, options=options)
        return text, info

    def step_one(self, index: int, action: Any) -> Step:
        """Takes one step in one environment; an episode that is over stays over until ``reset_one``."""
        text, reward, terminated, truncated, info = self.envs[index].step(action)
        return text, float(reward), terminated, truncated, info

    def reset(self) -> npt.NDArray[np.object_]:
        for i, env in enumerate(self.envs):
            self._begin(i, env.reset(seed=self._seeds[i], options=self._options[i] or None))
        self._reset_seeds()
        self._reset_options()
        return self._texts.copy()

    def step_wait(self) -> VecEnvStepReturn:
        rewards = np.zeros(self.num_envs, dtype=np.float32)
        dones = np.zeros(self.num_envs, dtype=bool)
        infos: list[dict[str, Any]] = []
        for i, action in enumerate(self.actions):
            text, rewards[i], terminated, truncated, info = self.step_one(i, action)
            info["TimeLimit.truncated"] = truncated and not terminated
            dones[i] = terminated or truncated
            if dones[i]:
                info["terminal_observation"] = text
                self._begin(i, self.envs[i].reset())
            else:
                self._texts[i] = text
            infos.append(deepcopy(info))
        return self._texts.copy(), rewards, dones, infos

    def _begin(self, index: int, begun: tuple[str, dict[str, Any]]) -> None:
        """Stores an episode's first state; if the episode is over already, that of the next one drawn."""
        env, passed_over = self.envs[index], 0
        while "result" in begun[1]:
            passed_over += 1
            if passed_over >= MOST_PASSED_OVER:
                raise RuntimeError(
                    f"{passed_over} episodes in a row were over before the first turn, the last one with "
                    f"result {begun[1]['result']!r}: expected some in which there is something to decide"
                )
            begun = env.reset()
        self._texts[index], self.reset_infos[index] = begun
