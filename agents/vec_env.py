"""A vector of environments with text observations, for Stable-Baselines3."""

from __future__ import annotations

from gamespiel.agents import required  # noqa: F401  (raises, with the pip command, without PyTorch)

# isort: split
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from functools import partial
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np
import numpy.typing as npt
from stable_baselines3.common.vec_env import DummyVecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnv, VecEnvStepReturn

MOST_PASSED_OVER = 1000
"""Episodes in a row that may be over at once: a tenth of euchre's are, and all if a backend is down."""

T = TypeVar("T")
Step = tuple[str, float, bool, bool, dict[str, Any]]


class TextVecEnv(DummyVecEnv):
    """A ``DummyVecEnv`` for Text observations, returned as an object array of strings, shape (n_envs,).

    Stable-Baselines3's own vectors allocate numeric buffers by shape, and a Text space has no shape. ``step``
    resets finished environments as theirs do: ``infos[i]`` then belongs to the old episode and
    ``reset_infos[i]`` to the new one. With ``reset_one`` and ``step_one`` the caller resets, and chooses the
    next task.

    A game can be over before the agent's first turn. Stable-Baselines3 has no place for an episode without
    steps, so ``reset`` and ``step`` skip such episodes and draw again; ``reset_one`` returns them.

    Environments that wait for a server (attribute ``waits``) run in threads, so that the requests of one
    round are under way together. The results are the same.

    Args:
        env_fns: Functions that each make a new environment.

    Attributes:
        waits: Whether threads are used. Set it if opponents that reset options name wait for a server.

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
        # Environments on a server have the attribute; see GameSpielEnv.
        self.waits = any(getattr(env.unwrapped, "waits", False) for env in self.envs)
        self._threads: ThreadPoolExecutor | None = None

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

    def reset_many(
        self, indices: Sequence[int], seeds: Sequence[int | None], options: Sequence[Any] | None = None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Begins an episode in each of these environments, in order; those that wait, all at once."""
        given = [None] * len(indices) if options is None else options
        calls = [
            partial(self.envs[i].reset, seed=seed, options=option)
            for i, seed, option in zip(indices, seeds, given, strict=True)
        ]
        return self._in_order(calls)

    def step_many(self, indices: Sequence[int], actions: Sequence[Any]) -> Iterator[Step]:
        """Takes one step in each of these environments, in order; those that wait, all at once."""
        return self._in_order(
            [partial(self.step_one, i, action) for i, action in zip(indices, actions, strict=True)]
        )

    def _in_order(self, calls: Sequence[Callable[[], T]]) -> Iterator[T]:
        """Yields the calls' results. Calls that wait for a server run together, each in a thread."""
        if not self.waits:
            return (call() for call in calls)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.num_envs, thread_name_prefix="TextVecEnv")
        return self._threads.map(lambda call: call(), calls)

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = None
        super().close()

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
        env, passed_over = self.envs[index], 0
        while "result" in begun[1]:
            passed_over += 1
            if passed_over >= MOST_PASSED_OVER:
                last = f"{begun[1]['result']!r}" + (f" ({begun[1]['fault']})" if "fault" in begun[1] else "")
                raise RuntimeError(
                    f"{passed_over} episodes in a row were over before the first turn, the last one with "
                    f"result {last}: expected some in which there is something to decide"
                )
            begun = env.reset()
        self._texts[index], self.reset_infos[index] = begun
