"""A batch of games in one process: what ``gym.make_vec("GameSpiel-v0", num_envs=…)`` makes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from numpy.typing import NDArray

from game_gym.env import GameSpielEnv
from task_gym.errors import ArgumentError, check_choice

SEARCHES = ("mcts",)
"""Opponents that think in OpenSpiel's C++, outside Python's lock: threads speed them up."""

MOST_WAITING = 64
"""The most threads that wait for a server, unless more are asked for."""

Info = dict[str, Any]
Step = tuple[str, float, bool, bool, Info]
T = TypeVar("T")


class GameSpielVectorEnv(SyncVectorEnv):
    """Steps a batch of games without the wrappers and copies of ``SyncVectorEnv``; the results are the same.

    Observations are a tuple of texts. ``infos["action_mask"]`` has all masks: int8, shape (num_envs, n).
    Finished games are reset as Gymnasium 1.x defines it, by default at the next step.

    Searching opponents of a batch think in parallel threads. Each game has its own opponents and random
    streams, so that results do not depend on the number of threads.

    Args:
        num_envs: Number of games.
        threads: Threads that play; None for one per core that this process may use if the opponent searches,
            one per game (at most 64) with a server, and otherwise one.
        autoreset_mode: "NextStep", "SameStep" or "Disabled", or Gymnasium's ``AutoresetMode``.
        **arguments: Those of ``GameSpiel-v0``.

    Attributes:
        threads: The number of threads.

    Raises:
        TaskGymError: an argument is outside what is allowed.
    """

    def __init__(
        self,
        num_envs: int = 1,
        *,
        threads: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        **arguments: Any,
    ) -> None:
        _check_count("num_envs", num_envs)
        if not isinstance(autoreset_mode, AutoresetMode):
            check_choice("autoreset_mode", autoreset_mode, [mode.value for mode in AutoresetMode])
        make = partial(GameSpielEnv, **arguments)
        super().__init__([make] * num_envs, copy=False, autoreset_mode=autoreset_mode)
        self.games = cast(list[GameSpielEnv], self.envs)
        self._env_obs: list[Any]  # Gymnasium's own, declared there as what it begins with
        self.threads = self._threads(threads, arguments.get("opponent", "random"))
        self._pool: ThreadPoolExecutor | None = None
        self._all = np.ones(num_envs, dtype=np.bool_)

    def action_masks(self) -> NDArray[np.bool_]:
        """Returns all masks: bool, shape (num_envs, n), True = legal."""
        return np.stack([game.action_masks() for game in self.games])

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: Info | None = None
    ) -> tuple[tuple[str, ...], Info]:
        """Begins an episode in every game, or in those of ``options["reset_mask"]``.

        Args:
            seed: One seed per game, or the first of consecutive seeds.
            options: Those of ``GameSpiel-v0``, for every game.
        """
        if options is not None and "reset_mask" in options:
            texts, infos = super().reset(seed=seed, options=options)  # type: ignore[arg-type]
            return tuple(texts), infos
        if seed is None or isinstance(seed, int):
            seeds: Sequence[int | None] = [
                None if seed is None else seed + number for number in range(self.num_envs)
            ]
        else:
            seeds = seed
        if len(seeds) != self.num_envs:
            raise ArgumentError(
                f"seed: {len(seeds)} seeds were given, allowed: {self.num_envs}, one per game"
            )
        begun = self._each(
            lambda i: self.games[i].reset(seed=seeds[i], options=options), range(self.num_envs)
        )
        self._env_obs = [text for text, _ in begun]
        for flags in (self._terminations, self._truncations, self._autoreset_envs):
            flags[:] = False
        return tuple(self._env_obs), self._together([info for _, info in begun])

    def step(
        self, actions: Any
    ) -> tuple[tuple[str, ...], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Info]:
        """Makes a move in every game; one that has ended begins anew, as ``autoreset_mode`` says."""
        given = actions.tolist() if isinstance(actions, np.ndarray) else list(actions)
        if len(given) != self.num_envs:
            raise ArgumentError(f"actions: {len(given)} were given, allowed: {self.num_envs}, one per game")
        mode, over = self.autoreset_mode, self._autoreset_envs.nonzero()[0].tolist()
        if over and mode is AutoresetMode.DISABLED:
            raise ArgumentError(
                f"step: games {over} have ended and autoreset_mode is {mode.value!r}, allowed: after a reset "
                'with options={"reset_mask": …}'
            )
        anew = set(over) if mode is AutoresetMode.NEXT_STEP else set()

        def play(i: int) -> Step:
            if i in anew:
                text, info = self.games[i].reset()
                return text, 0.0, False, False, info
            return self.games[i].step(given[i])

        texts, rewards, terminated, truncated, rows = zip(
            *self._each(play, range(self.num_envs)), strict=True
        )
        self._rewards = np.array(rewards, dtype=np.float64)
        self._terminations = np.array(terminated, dtype=np.bool_)
        self._truncations = np.array(truncated, dtype=np.bool_)
        self._autoreset_envs = self._terminations | self._truncations
        self._env_obs, infos = list(texts), list(rows)
        final = self._begin_again(infos) if mode is AutoresetMode.SAME_STEP else {}
        return (
            tuple(self._env_obs),
            self._rewards.copy(),
            self._terminations.copy(),
            self._truncations.copy(),
            final | self._together(infos),
        )

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the threads and the games."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        super().close_extras(**kwargs)

    def _begin_again(self, infos: list[Info]) -> Info:
        """Resets the games that have ended, in place of their texts and infos; returns the final ones."""
        over = np.flatnonzero(self._autoreset_envs).tolist()
        if not over:
            return {}
        texts = np.full(self.num_envs, None, dtype=object)
        ended: list[Info] = [{} for _ in infos]
        for i, (text, info) in zip(over, self._each(lambda i: self.games[i].reset(), over), strict=True):
            texts[i], ended[i] = self._env_obs[i], infos[i]
            self._env_obs[i], infos[i] = text, info
        there = self._autoreset_envs
        return {
            "final_obs": texts,
            "_final_obs": there.copy(),
            "final_info": self._together(ended),
            "_final_info": there.copy(),
        }

    def _threads(self, threads: int | None, opponent: str) -> int:
        if threads is not None:
            return _check_count("threads", threads)
        if self.games[0].waits:
            return min(self.num_envs, MOST_WAITING)
        if opponent.partition(":")[0] in SEARCHES:
            return min(self.num_envs, _cores())
        return 1

    def _each(self, call: Callable[[int], T], indices: Iterable[int]) -> list[T]:
        """Returns the calls' results in order; the calls run in threads, if there are several."""
        if self.threads == 1:
            return [call(i) for i in indices]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="GameSpielVectorEnv")
        return list(self._pool.map(call, indices))

    def _together(self, rows: Sequence[Info]) -> Info:
        """Returns one dictionary of arrays, as Gymnasium's ``_add_info`` makes one, but column by column.

        Where a row has no such key, the array has zero or None, and ``_key`` False.
        """
        alike: dict[tuple[str, ...], list[int]] = {}  # rows with the same keys
        for i, row in enumerate(rows):
            alike.setdefault(tuple(row), []).append(i)
        owners: dict[str, list[int]] = {}
        for keys, indices in alike.items():
            for key in keys:
                owners[key] = owners[key] + indices if key in owners else indices
        infos: Info = {}
        for key, indices in owners.items():
            if len(indices) == self.num_envs:
                there = self._all.copy()
                infos[key] = self._column([row[key] for row in rows])
            else:
                there = np.zeros(self.num_envs, dtype=np.bool_)
                there[indices] = True
                infos[key] = self._column([rows[i][key] for i in indices], indices)
            infos[f"_{key}"] = there
        return infos

    def _column(self, values: list[Any], indices: list[int] | None = None) -> Any:
        """Returns the values of one key as an array, or as a dictionary of arrays.

        Args:
            values: One per game, or one per index.
            indices: The games that have one; None for all, in order.
        """
        kind = type(values[0])
        if kind is dict:
            found: Info = {}
            for i, value in zip(indices or range(self.num_envs), values, strict=True):
                self._add_info(found, value, i)
            return found
        if kind is np.ndarray:
            shape, dtype = values[0].shape, values[0].dtype
            # Several times as fast as np.array, which looks at every row.
            given = np.frombuffer(bytearray().join(values), dtype).reshape(len(values), *shape)
        elif kind in (int, float, bool) and None not in values:  # a score is None after a fault
            given = np.array(values, dtype=kind)
        else:
            given = np.fromiter(values, dtype=object, count=len(values))
        if indices is None:
            return given
        array = np.empty((self.num_envs, *given.shape[1:]), dtype=given.dtype)
        if array.dtype != object:  # empty objects are None
            array[:] = 0
        array[indices] = given
        return array


def _check_count(name: str, given: Any) -> int:
    if type(given) is not int or given < 1:
        raise ArgumentError(f"{name}: {given!r} was given, allowed: whole numbers of at least 1")
    return given


def _cores() -> int:
    """Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
