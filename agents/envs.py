"""Several environments with text observations, each of which plays its own episodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from math import inf
from typing import Any, TypeVar

import gymnasium as gym

from task_gym.errors import ArgumentError, nearest
from task_gym.processes import count_cores, share_cores
from task_gym.workers import RemoteGroup, Slots, WorkerPool
from task_gym.workers.group import ATTRIBUTES

T = TypeVar("T")
Step = tuple[str, float, bool, bool, dict[str, Any]]

SEARCH_PARTS = 2
"""Parts of a round against opponents that search: they think in one while the model decides in the other."""

LEAST_SEARCH = 0.6
"""CPU seconds of search in a round, from which it has parts; below, two forwards cost more than they save."""


ALIKE = (
    "action_space", "metadata", "observation_space", "opponents", "render_mode", "reset_options",
    "search_seconds", "searches", "spec", "variants", "waits", "zero_sum",
)  # fmt: skip
"""Attributes that all environments of a function have alike, at any time."""


class TextEnvs:
    """Environments with Text observations and one action space, which the caller resets and steps.

    Environments that wait for a server (attribute ``waits``) run in a thread each, so that the requests of
    one round are under way together. Those whose opponents search (attribute ``searches``) share ``threads``
    threads. With ``workers``, other processes play them. The results are the same.

    It needs no learning library; ``TextVecEnv`` is the same as a vector of Stable-Baselines3.

    Args:
        env_fns: Functions that each make a new environment.
        threads: Threads in which opponents search; None for one per core that this process may use.
        workers: Play the environments; None to play them here.

    Attributes:
        envs: The environments. With workers, one of each function, which nobody plays.
        threads: As given, or the number of cores.
        waits: Whether each has a thread. Set it if opponents that reset options name wait for a server.
        searches: Whether they share threads. Set it if opponents that reset options name search.
        search_seconds: CPU seconds of search per turn, as the environments estimate them (attribute
            ``search_seconds``); infinite if they do not say.

    Raises:
        ValueError: no environments, one environment twice, or spaces that do not fit.
    """

    def __init__(
        self,
        env_fns: Sequence[Callable[[], gym.Env[Any, Any]]],
        threads: int | None = None,
        workers: WorkerPool | None = None,
    ) -> None:
        self._env_fns, self.workers = list(env_fns), workers
        self.envs = [make() for make in (self._env_fns if workers is None else self._distinct())]
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
        self.num_envs = len(self._env_fns)
        self.observation_space, self.action_space = first.observation_space, first.action_space
        # Games have the attributes; see GameSpielEnv.
        self.waits, self.searches = (
            any(getattr(env.unwrapped, name, False) for env in self.envs) for name in ("waits", "searches")
        )
        self.search_seconds = max(
            getattr(
                env.unwrapped, "search_seconds", inf if getattr(env.unwrapped, "searches", False) else 0.0
            )
            for env in self.envs
        )
        self.threads = count_cores() if threads is None else threads
        self._pool: ThreadPoolExecutor | None = None
        self._group: RemoteGroup | None = None
        self._slots: Slots | None = None
        #: Calls whose results nobody has taken yet, and calls that were under way when they were given up.
        self._under_way: set[Future[Any]] = set()
        self._given_up: set[Future[Any]] = set()

    @property
    def parts(self) -> int:
        """The parts in which a round's episodes take their turns, so that opponents need not be waited for.

        It decides which turns share a forward. So it depends on games, opponents, budgets and the number of
        environments alone, not on threads or time.
        """
        dear = self.num_envs * self.search_seconds >= LEAST_SEARCH
        return SEARCH_PARTS if self.searches and dear else 1

    def reset_one(
        self, index: int, seed: int, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begins an episode in one environment."""
        if self.workers is not None:
            return next(self.reset_many([index], [seed], [options]))
        self._join_given_up()
        text, info = self.envs[index].reset(seed=seed, options=options)
        return text, info

    def step_one(self, index: int, action: Any) -> Step:
        """Takes one step in one environment; an episode that is over stays over until ``reset_one``."""
        if self.workers is not None:
            return next(self.step_many([index], [action]))
        text, reward, terminated, truncated, info = self.envs[index].step(action)
        return text, float(reward), terminated, truncated, info

    def reset_many(
        self, indices: Sequence[int], seeds: Sequence[int | None], options: Sequence[Any] | None = None
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """Begins an episode in each of these environments; returns what ``reset`` does, in order.

        In threads and in workers the calls begin at once, otherwise each when its result is asked for.
        """
        all_options = [None] * len(indices) if options is None else options
        if self.workers is not None:
            frames = self._require_slots().reset(indices, seeds, all_options)
            return ((frame.observation, frame.info) for frame in frames)
        calls = [
            partial(self.envs[i].reset, seed=seed, options=option)
            for i, seed, option in zip(indices, seeds, all_options, strict=True)
        ]
        return self._run_in_order(calls)

    def step_many(self, indices: Sequence[int], actions: Sequence[Any]) -> Iterator[Step]:
        """Takes one step in each of these environments; returns the steps in order, as ``reset_many``."""
        if self.workers is not None:
            return (frame[:5] for frame in self._require_slots().step(indices, actions))
        return self._run_in_order(
            [partial(self.step_one, i, action) for i, action in zip(indices, actions, strict=True)]
        )

    def give_up_calls(self, *, join: bool = False) -> None:
        """Gives up the calls of ``reset_many`` and ``step_many`` whose results nobody has taken.

        Those that have not begun never will. Those that have end before the environments' next calls, or,
        with ``join``, before this returns; only requests to a server are not waited for here.
        """
        if self._group is not None:
            self._group.give_up(join=join and not self.waits)
        self._given_up |= {call for call in self._under_way if not call.cancel()}
        self._under_way.clear()
        if join and not self.waits:
            self._join_given_up()

    def take_worker_metrics(self) -> dict[str, float]:
        """Returns what went wrong with workers since the last call, and what it cost; nothing without any."""
        return {} if self.workers is None else dict(self.workers.take_counts()._asdict())

    def _require_slots(self) -> Slots:
        """Returns the episodes that workers play. They are made late: ``waits`` may be set before."""
        assert self.workers is not None
        if self._slots is None:
            self._group = RemoteGroup(self.workers, self._env_fns, waits=self.waits)
            self._slots = Slots(self._group.advance, self.num_envs)
        return self._slots

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

    def env_method(
        self, method_name: str, *arguments: Any, indices: Any = None, **keywords: Any
    ) -> list[Any]:
        """Calls a method of these environments, of all if none are named; returns the results in order.

        Raises:
            ArgumentError: workers play the environments, and it is another method than ``action_masks``.
        """
        if self.workers is None:
            return [call(*arguments, **keywords) for call in self.get_attr(method_name, indices)]
        if method_name != "action_masks" or arguments or keywords:
            raise ArgumentError(
                f"method of environments: {method_name!r} was given, and workers play them; allowed: "
                f"'action_masks' without arguments{nearest(method_name, ['action_masks'])}"
            )
        frames = self._require_slots().frames
        return [frames[i].mask for i in self._list_indices(indices)]  # type: ignore[union-attr]

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Returns an attribute of these environments or of their wrappers, in order.

        Raises:
            ArgumentError: workers play the environments, and the attribute does not come with each turn.
        """
        chosen = self._list_indices(indices)
        if self.workers is None:
            return [self.envs[i].get_wrapper_attr(attr_name) for i in chosen]
        if attr_name in ALIKE:
            return [env.get_wrapper_attr(attr_name) for env in self.prototypes(chosen)]
        if attr_name not in ATTRIBUTES:
            allowed = (*ATTRIBUTES, *ALIKE)
            raise ArgumentError(
                f"attribute of environments: {attr_name!r} was given, and workers play them; allowed: "
                f"{', '.join(allowed)}{nearest(attr_name, allowed)}"
            )
        frames = self._require_slots().frames
        return [frames[i].attributes[attr_name] for i in chosen]  # type: ignore[union-attr]

    def has_attr(self, attr_name: str) -> bool:
        """Returns whether all environments have an attribute."""
        return all(env.has_wrapper_attr(attr_name) for env in self.envs)

    def prototypes(self, indices: Sequence[int]) -> list[gym.Env[Any, Any]]:
        """Returns environments that are made as these are: these themselves, without workers."""
        if self.workers is None:
            return [self.envs[i] for i in indices]
        distinct = {id(make): env for make, env in zip(self._distinct(), self.envs, strict=True)}
        return [distinct[id(self._env_fns[i])] for i in indices]

    def _distinct(self) -> list[Callable[[], gym.Env[Any, Any]]]:
        return list({id(make): make for make in self._env_fns}.values())

    def _list_indices(self, indices: Any) -> Sequence[int]:
        """Returns indices as Stable-Baselines3 takes them: None for all, one, or several."""
        if indices is None:
            return range(self.num_envs)
        return [indices] if isinstance(indices, int) else list(indices)

    def close(self) -> None:
        """Ends the threads, and closes the environments."""
        self.give_up_calls()
        if self._group is not None:
            self._group.close()
            self._group = self._slots = None
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        self._given_up.clear()
        for env in self.envs:
            env.close()
