"""A batch of games in one process: what ``gym.make_vec("GameSpiel-v0", num_envs=…)`` makes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import Any, TypeVar, cast

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from task_gym.errors import MissingPackageError

try:
    from gymnasium.vector import AutoresetMode, SyncVectorEnv
except ImportError as error:
    raise MissingPackageError(
        f"a batch of games (gym.make_vec) needs Gymnasium 1.1 or newer, and this is {gym.__version__}; "
        "allowed: vectorization_mode='sync' or 'async', or pip install 'gymnasium>=1.1'"
    ) from error

# isort: split

from game_gym.backends import Turn
from game_gym.env import GameSpielEnv
from task_gym.checks import check_least, check_names, is_whole, read_action
from task_gym.contract import illegal_info
from task_gym.errors import ArgumentError, check_choice, shown
from task_gym.remote.settings import DEFAULTS

SEARCHES = ("mcts",)
"""Opponents that think in OpenSpiel's C++, outside Python's lock: threads speed them up."""

MOST_WAITING = 64
"""The most threads that wait for a server, unless more are asked for."""

Info = dict[str, Any]
Row = tuple[Any, ...]
"""A game after a step or a reset: ``env.Moved``, whose first is its ``Turn``, then ``GameSpielEnv.facts``."""
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
        num_envs = check_least("num_envs", num_envs, 1)
        check_names(GameSpielEnv, arguments, ("num_envs", "threads", "autoreset_mode", *DEFAULTS))
        if not isinstance(autoreset_mode, AutoresetMode):
            check_choice("autoreset_mode", autoreset_mode, [mode.value for mode in AutoresetMode])
        make = partial(GameSpielEnv, **arguments)
        super().__init__([make] * num_envs, copy=False, autoreset_mode=autoreset_mode)
        self.games = cast(list[GameSpielEnv], self.envs)
        self._env_obs: list[Any]  # Gymnasium's own, declared there as what it begins with
        self.threads = self._threads(threads, arguments.get("opponent", "random"))
        self._pool: ThreadPoolExecutor | None = None
        self._all = np.ones(num_envs, dtype=np.bool_)
        self._last: dict[str, tuple[tuple[Any, ...], Any]] = {}  # by key: see _lasting

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
        seeds = self._seeds(seed)
        if isinstance(options, Mapping) and "reset_mask" in options:
            texts, infos = super().reset(seed=seeds, options=dict(options))  # type: ignore[arg-type]
            return tuple(texts), infos
        rows = self._each(lambda i: self._begun(i, seeds[i], options), range(self.num_envs))
        self._env_obs = [row[0].text for row in rows]
        for flags in (self._terminations, self._truncations, self._autoreset_envs):
            flags[:] = False
        return tuple(self._env_obs), self._infos(rows)

    def step(
        self, actions: Any
    ) -> tuple[tuple[str, ...], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Info]:
        """Makes a move in every game; one that has ended begins anew, as ``autoreset_mode`` says."""
        whole = isinstance(actions, np.ndarray) and actions.ndim == 1 and actions.dtype.kind in "iu"
        given = actions.tolist() if whole else _listed("actions", actions, "one per game")
        if len(given) != self.num_envs:
            raise ArgumentError(f"actions: {len(given)} were given, allowed: {self.num_envs}, one per game")
        mode, over = self.autoreset_mode, self._autoreset_envs.nonzero()[0].tolist()
        if over and mode is AutoresetMode.DISABLED:
            raise ArgumentError(
                f"step: games {over} have ended and autoreset_mode is {mode.value!r}, allowed: after a reset "
                'with options={"reset_mask": …}'
            )
        games, anew = self.games, set(over) if mode is AutoresetMode.NEXT_STEP else set()
        # All are read before a game moves: after an error, the caller may step again.
        moves: list[Any] = given
        if not whole:
            moves = [None if i in anew else read_action(move) for i, move in enumerate(given)]

        def play(i: int) -> Row:
            if i in anew:
                return self._begun(i)
            game = games[i]
            return *game.move(moves[i]), *game.facts

        rows = self._each(play, range(self.num_envs))
        self._env_obs = [row[0].text for row in rows]
        ended = [row[4] is not None and i not in anew for i, row in enumerate(rows)]
        self._rewards = np.array([row[1] for row in rows], dtype=np.float64)
        self._autoreset_envs = np.array(ended, dtype=np.bool_)
        self._truncations = np.array([row[2] for row in rows], dtype=np.bool_)
        self._terminations = self._autoreset_envs & ~self._truncations
        final = self._begin_again(rows) if mode is AutoresetMode.SAME_STEP else {}
        return (
            tuple(self._env_obs),
            self._rewards.copy(),
            self._terminations.copy(),
            self._truncations.copy(),
            final | self._infos(rows),
        )

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the threads and the games."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
        super().close_extras(**kwargs)

    def __getstate__(self) -> Info:
        """Returns everything but the threads, which a copy starts anew."""
        return {**vars(self), "_pool": None}

    def _seeds(self, seed: int | Sequence[int | None] | None) -> Sequence[int | None]:
        """Returns one seed per game."""
        if seed is None:
            return [None] * self.num_envs
        if is_whole(seed):
            return [int(seed) + number for number in range(self.num_envs)]
        seeds = _listed("seed", seed, "None, a whole number or one per game")
        if len(seeds) != self.num_envs:
            raise ArgumentError(
                f"seed: {len(seeds)} seeds were given, allowed: {self.num_envs}, one per game"
            )
        return seeds

    def _begun(self, i: int, seed: int | None = None, options: Info | None = None) -> Row:
        """Begins an episode in a game; one that is over at once has an ending."""
        game = self.games[i]
        game.restart(seed, options)
        turn = game.turn
        assert turn is not None
        upstream = 0.0 if turn.ending is None else turn.reward
        return turn, 0.0, False, upstream, turn.ending, None, *game.facts

    def _begin_again(self, rows: list[Row]) -> Info:
        """Resets the games that have ended, in place of their texts and rows; returns the final ones."""
        over = np.flatnonzero(self._autoreset_envs).tolist()
        if not over:
            return {}
        final = self._infos([rows[i] for i in over], over)
        texts = np.full(self.num_envs, None, dtype=object)
        for i, row in zip(over, self._each(self._begun, over), strict=True):
            texts[i] = self._env_obs[i]
            rows[i], self._env_obs[i] = row, row[0].text
        there = self._autoreset_envs
        return {
            "final_obs": texts,
            "_final_obs": there.copy(),
            "final_info": final,
            "_final_info": there.copy(),
        }

    def _threads(self, threads: int | None, opponent: str) -> int:
        if threads is not None:
            return check_least("threads", threads, 1)
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
        calls = [self._pool.submit(call, i) for i in indices]
        try:
            wait(calls)
        except BaseException:  # Ctrl-C
            for waiting in calls:
                waiting.cancel()
            wait(calls)
            raise
        # Only now, because an error would leave games that still move, and mix with the next call's moves.
        return [done.result() for done in calls]

    def _infos(self, rows: Sequence[Row], indices: list[int] | None = None) -> Info:
        """Returns one dictionary of arrays, as Gymnasium's ``_add_info`` makes one, but column by column.

        Where a game has no such key, the array has zero or None, and ``_key`` False.

        Args:
            rows: One per game, or one per index.
            indices: The games that have one; None for all, in order.
        """
        turns: tuple[Turn, ...]
        turns, _, _, upstream, endings, illegal, ids, seeds, names, opponents, moves = zip(*rows, strict=True)
        where = None if indices is None else np.array(indices)
        there = self._all if where is None else self._there(where)
        columns = {
            "action_mask": self._masks(turns, indices),
            "legal_actions": self._column([turn.legal.copy() for turn in turns], where),
            "admissible_commands": self._column([turn.names.copy() for turn in turns], where),
            "task_id": self._lasting("task_id", ids, where),
            "seed": self._column(seeds, where),
            "game": self._lasting("game", names, where),
            "seat": self._column([turn.seat for turn in turns], where),
            "opponent": self._lasting("opponent", opponents, where),
            "turn": self._column(moves, where),
            "upstream_reward": self._column(upstream, where),
        }
        infos: Info = {}
        for key, column in columns.items():
            infos[key], infos[f"_{key}"] = column, there.copy()
        more: dict[int, Info] = {}
        for place, (turn, ending, message) in enumerate(zip(turns, endings, illegal, strict=True)):
            own = {} if message is None else {"error": illegal_info(message)["error"]}
            if turn.opponent_illegal is not None:
                own["opponent_illegal"] = turn.opponent_illegal
            if ending is not None:
                own.update(ending.info())
            if own:
                more[place if indices is None else indices[place]] = own
        return infos | self._together(more)

    def _masks(self, turns: Sequence[Turn], indices: list[int] | None) -> NDArray[np.int8]:
        """Returns the masks of turns: int8, shape (num_envs, n); zeros for a game without a turn."""
        count = int(self.single_action_space.n)  # type: ignore[attr-defined]
        # Bytes are several times faster to set one by one than an array is to index.
        mask = bytearray(self.num_envs * count)
        for i, turn in zip(range(self.num_envs) if indices is None else indices, turns, strict=True):
            first = i * count
            for action in turn.legal:
                mask[first + action] = 1
        return np.frombuffer(mask, np.int8).reshape(self.num_envs, count)

    def _there(self, where: NDArray[np.int64]) -> NDArray[np.bool_]:
        there = np.zeros(self.num_envs, dtype=np.bool_)
        there[where] = True
        return there

    def _lasting(self, key: str, values: tuple[Any, ...], where: NDArray[np.int64] | None) -> Any:
        """Does as ``_column`` for values that are mostly those of the last step, and cannot be changed."""
        if where is not None:
            return self._column(values, where)
        before = self._last.get(key)
        if before is None or before[0] != values:
            before = self._last[key] = values, self._column(values)
        return before[1].copy()

    def _together(self, rows: Mapping[int, Info]) -> Info:
        """Returns one dictionary of arrays, as ``_infos`` does, of what some games have to tell."""
        alike: dict[tuple[str, ...], list[int]] = {}  # games with the same keys
        for i, row in rows.items():
            alike.setdefault(tuple(row), []).append(i)
        owners: dict[str, tuple[int, ...]] = {}  # the groups of each key
        groups = list(alike.values())
        for number, keys in enumerate(alike):
            for key in keys:
                owners[key] = (*owners.get(key, ()), number)
        infos: Info = {}
        known: dict[tuple[int, ...], tuple[list[int], NDArray[np.int64], NDArray[np.bool_]]] = {}
        for key, numbers in owners.items():
            if numbers not in known:
                indices = [i for number in numbers for i in groups[number]]
                known[numbers] = indices, (where := np.array(indices)), self._there(where)
            indices, where, there = known[numbers]
            infos[key] = self._column([rows[i][key] for i in indices], where)
            infos[f"_{key}"] = there.copy()
        return infos

    def _column(self, values: Sequence[Any], where: NDArray[np.int64] | None = None) -> Any:
        """Returns the values of one key as an array, or as a dictionary of arrays.

        Args:
            values: One per game, or one per index.
            where: The games that have one; None for all, in order.
        """
        kind = type(values[0])
        if kind is dict:
            found: Info = {}
            for i, value in zip(range(self.num_envs) if where is None else where, values, strict=True):
                self._add_info(found, value, int(i))
            return found
        if kind in (int, float, bool) and None not in values:  # a score is None after a fault
            given = np.array(values, dtype=kind)
        else:
            given = np.fromiter(values, dtype=object, count=len(values))
        if where is None:
            return given
        make = np.empty if given.dtype == object else np.zeros  # empty objects are None
        array = make(self.num_envs, given.dtype)
        array[where] = given
        return array


def _listed(name: str, given: Any, allowed: str) -> list[Any]:
    try:
        return list(given)
    except TypeError as error:
        raise ArgumentError(f"{name}: {shown(given)} was given, allowed: {allowed}") from error


def _cores() -> int:
    """Returns the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
