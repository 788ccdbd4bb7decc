"""Several environments with text observations, each of which plays its own episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, TypeVar

import gymnasium as gym

from task_gym.cores import count_cores, share_cores

T = TypeVar("T")
Step = tuple[str, float, bool, bool, dict[str, Any]]

SEARCH_PARTS = 2
"""Parts of a round against opponents that search: they think in one while the model decides in the other."""


class TextEnvs:
    """Environments with Text observations and one action space, which the caller resets and steps.

    Environments that wait for a server (attribute ``waits``) run in a thread each, so that the requests of
    one round are under way together. Those whose opponents search (attribute ``searches``) share ``threads``
    threads. The results are the same.

    It needs no learning library; ``TextVecEnv`` is the same as a vector of Stable-Baselines3.

    Args:
        env_fns: Functions that each make a new environment.
        threads: Threads in which opponents search; None for one per core that this process may use.

    Attributes:
        envs: The environments.
        threads: As given, or the number of cores.
        waits: Whether each has a thread. Set it if opponents that reset options name wait for a server.
        searches: Whether they share threads. Set it if opponents that reset options name search.

    Raises:
        ValueError: no environments, one environment twice, or spaces that do not fit.
    """

    def __init__(
        self, env_fns: Sequence[Callable[[], gym.Env[Any, Any]]], threads: int | None = None
    ) -> None:
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
        # Games have the attributes; see GameSpielEnv.
        self.waits, self.searches = (
            any(getattr(env.unwrapped, name, False) for env in self.envs) for name in ("waits", "searches")
        )
        self.threads = count_cores() if threads is None else threads
        self._pool: ThreadPoolExecutor | None = None
        #: Calls whose results nobody has taken yet, and calls that were under way when they were given up.
        self._under_way: set[Future[Any]] = set()
        self._given_up: set[Future[Any]] = set()

    @property
    def parts(self) -> int:
        """The parts in which a round's episodes take their turns, so that opponents need not be waited for.

        It decides which turns share a forward, so it depends on the opponents alone, not on the threads.
        """
        return SEARCH_PARTS if self.searches else 1

    def reset_one(
        self, index: int, seed: int, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begins an episode in one environment."""
        self._join_given_up()
        text, info = self.envs[index].reset(seed=seed, options=options)
        return text, info

    def step_one(self, index: int, action: Any) -> Step:
        """Takes one step in one environment; an episode that is over stays over until ``reset_one``."""
        text, reward, terminated, truncated, info = self.envs[index].step(action)
        return text, float(reward), terminated, truncated, info

    def reset_many(
        self, indices: Sequence[int], seeds: Sequence[int | None], options: Sequence[Any] | None = None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Begins an episode in each of these environments; returns what ``reset`` does, in order.

        In threads the calls begin at once, otherwise each when its result is asked for.
        """
        given = [None] * len(indices) if options is None else options
        calls = [
            partial(self.envs[i].reset, seed=seed, options=option)
            for i, seed, option in zip(indices, seeds, given, strict=True)
        ]
        return self._run_in_order(calls)

    def step_many(self, indices: Sequence[int], actions: Sequence[Any]) -> Iterator[Step]:
        """Takes one step in each of these environments; returns the steps in order, as ``reset_many``."""
        return self._run_in_order(
            [partial(self.step_one, i, action) for i, action in zip(indices, actions, strict=True)]
        )

    def give_up_calls(self, *, join: bool = False) -> None:
        """Gives up the calls of ``reset_many`` and ``step_many`` whose results nobody has taken.

        Those that have not begun never will. Those that have end before the environments' next calls, or,
        with ``join``, before this returns; only requests to a server are not waited for here.
        """
        self._given_up |= {call for call in self._under_way if not call.cancel()}
        self._under_way.clear()
        if join and not self.waits:
            self._join_given_up()

    def _join_given_up(self) -> None:
        wait(self._given_up)
        self._given_up.clear()

    def _run_in_order(self, calls: Sequence[Callable[[], T]]) -> Iterator[T]:
        """Returns the calls' results, in order; in threads if the environments wait or search."""
        if not self.waits and not self.searches:
            return (call() for call in calls)
        self._join_given_up()
        if self._pool is None:
            size = self.num_envs if self.waits else min(self.num_envs, self.threads)
            name = type(self).__name__
            self._pool = ThreadPoolExecutor(size, thread_name_prefix=name, initializer=share_cores)
        begun = [self._pool.submit(call) for call in calls]
        self._under_way.update(begun)
        return self._take_results(begun)

    def _take_results(self, begun: Sequence[Future[T]]) -> Iterator[T]:
        try:
            for call in begun:
                result = call.result()
                self._under_way.discard(call)
                yield result
        except Exception:
            # Environments that still move would mix their moves with those of the next calls.
            self.give_up_calls(join=True)
            raise

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
        self.give_up_calls()
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        self._given_up.clear()
