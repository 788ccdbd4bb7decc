"""Several environments with text observations, each of which plays its own episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

import gymnasium as gym

T = TypeVar("T")
Step = tuple[str, float, bool, bool, dict[str, Any]]


class TextEnvs:
    """Environments with Text observations and one action space, which the caller resets and steps.

    Environments that wait for a server (attribute ``waits``) run in threads, so that the requests of one
    round are under way together. The results are the same.

    It needs no learning library; ``TextVecEnv`` is the same as a vector of Stable-Baselines3.

    Args:
        env_fns: Functions that each make a new environment.

    Attributes:
        envs: The environments.
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
                raise ValueError(
                    f"{type(self).__name__} takes Text observations, got {env.observation_space}"
                )
            if env.action_space != first.action_space:
                raise ValueError(
                    f"environments differ in actions: {first.action_space} and {env.action_space}"
                )
        self.num_envs = len(self.envs)
        self.observation_space, self.action_space = first.observation_space, first.action_space
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
        return self._run_in_order(calls)

    def step_many(self, indices: Sequence[int], actions: Sequence[Any]) -> Iterator[Step]:
        """Takes one step in each of these environments, in order; those that wait, all at once."""
        return self._run_in_order(
            [partial(self.step_one, i, action) for i, action in zip(indices, actions, strict=True)]
        )

    def _run_in_order(self, calls: Sequence[Callable[[], T]]) -> Iterator[T]:
        """Yields the calls' results. Calls that wait for a server run together, each in a thread."""
        if not self.waits:
            return (call() for call in calls)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(self.num_envs, thread_name_prefix=type(self).__name__)
        return self._threads.map(lambda call: call(), calls)

    def env_method(self, name: str, *arguments: Any, indices: Sequence[int] | None = None) -> list[Any]:
        """Calls a method of these environments, of all if none are named; returns the results in order."""
        return [call(*arguments) for call in self.get_attr(name, indices)]

    def get_attr(self, name: str, indices: Sequence[int] | None = None) -> list[Any]:
        """Returns an attribute of these environments or of their wrappers, in order."""
        chosen = range(self.num_envs) if indices is None else indices
        return [self.envs[i].get_wrapper_attr(name) for i in chosen]

    def has_attr(self, name: str) -> bool:
        """Returns whether all environments have an attribute."""
        return all(env.has_wrapper_attr(name) for env in self.envs)

    def close(self) -> None:
        """Ends the threads, and closes the environments."""
        self._end_threads()
        for env in self.envs:
            env.close()

    def _end_threads(self) -> None:
        if self._threads is not None:
            self._threads.shutdown()
            self._threads = None
