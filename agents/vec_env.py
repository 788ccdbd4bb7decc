"""A vector of environments with text observations, for Stable-Baselines3."""

from __future__ import annotations

from gamespiel.agents import required  # noqa: F401  (raises, with the pip command, without PyTorch)

# isort: split
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from stable_baselines3.common.vec_env import DummyVecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnv, VecEnvStepReturn

from gamespiel.agents.envs import TextEnvs
from task_gym.errors import ArgumentError
from task_gym.workers import WorkerPool

MOST_PASSED_OVER = 1000
"""Episodes in a row that may be over at once: a tenth of euchre's are, and all if a backend is down."""


class TextVecEnv(TextEnvs, DummyVecEnv):
    """``TextEnvs`` as a ``DummyVecEnv``. Observations are an object array of strings, shape (n_envs,).

    Stable-Baselines3's own vectors allocate numeric buffers by shape, and a Text space has no shape. ``step``
    resets finished environments as theirs do: ``infos[i]`` then belongs to the old episode and
    ``reset_infos[i]`` to the new one. With ``reset_one`` and ``step_one`` the caller resets, and chooses the
    next task.

    A game can be over before the agent's first turn. Stable-Baselines3 has no place for an episode without
    steps, so ``reset`` and ``step`` skip such episodes and draw again; ``reset_one`` returns them.
    """

    def __init__(
        self,
        env_fns: Sequence[Callable[[], gym.Env[Any, Any]]],
        threads: int | None = None,
        workers: WorkerPool | None = None,
    ) -> None:
        TextEnvs.__init__(self, env_fns, threads, workers)
        first = self.envs[0]
        VecEnv.__init__(self, self.num_envs, first.observation_space, first.action_space)
        self.metadata = first.metadata
        self._texts = np.full(self.num_envs, "", dtype=object)

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        if self.workers is not None:
            raise ArgumentError(
                f"set_attr: {attr_name!r} was given, and workers play the environments; allowed: nothing, "
                "because a worker that is lost would lose it"
            )
        super().set_attr(attr_name, value, indices)

    def _get_target_envs(self, indices: Any) -> list[gym.Env[Any, Any]]:
        return self.prototypes(self._list_indices(indices))

    def reset(self) -> npt.NDArray[np.object_]:
        options = [option or None for option in self._options]
        for i, begun in enumerate(self.reset_many(range(self.num_envs), self._seeds, options)):
            self._begin(i, begun)
        self._reset_seeds()
        self._reset_options()
        return self._texts.copy()

    def step_wait(self) -> VecEnvStepReturn:
        rewards = np.zeros(self.num_envs, dtype=np.float32)
        dones = np.zeros(self.num_envs, dtype=bool)
        infos: list[dict[str, Any]] = []
        over: list[int] = []
        for i, step in enumerate(self.step_many(range(self.num_envs), list(self.actions))):
            text, rewards[i], terminated, truncated, info = step
            info["TimeLimit.truncated"] = truncated and not terminated
            dones[i] = terminated or truncated
            if dones[i]:
                info["terminal_observation"] = text
                over.append(i)
            else:
                self._texts[i] = text
            infos.append(deepcopy(info))
        for i, begun in zip(over, self.reset_many(over, [None] * len(over)), strict=True):
            self._begin(i, begun)
        return self._texts.copy(), rewards, dones, infos

    def _begin(self, index: int, begun: tuple[str, dict[str, Any]]) -> None:
        """Stores an episode's first state; if the episode is over already, that of the next one drawn."""
        passed_over = 0
        while "result" in begun[1]:
            passed_over += 1
            if passed_over >= MOST_PASSED_OVER:
                last = f"{begun[1]['result']!r}" + (f" ({begun[1]['fault']})" if "fault" in begun[1] else "")
                raise RuntimeError(
                    f"{passed_over} episodes in a row were over before the first turn, the last one with "
                    f"result {last}: expected some in which there is something to decide"
                )
            begun = next(self.reset_many([index], [None]))
        self._texts[index], self.reset_infos[index] = begun
