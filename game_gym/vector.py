"""A batch of games in one process: what ``gym.make_vec("GameSpiel-v0", num_envs=…)`` makes."""

from __future__ import annotations

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

from game_gym.backends import GameTurn, Positions
from game_gym.columns import Info, InfoColumns, Moved, spread
from game_gym.env import GameSpielEnv, Marked
from task_gym.arguments import check_least, check_names, is_whole, read_action
from task_gym.errors import ArgumentError, check_choice, quote
from task_gym.processes import count_cores, share_cores
from task_gym.remote.settings import DEFAULTS

MOST_WAITING = 64
"""The most threads that wait for a server, unless more are asked for."""

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
        autoreset_mode: "NextStep", "SameStep" or "Disabled", or Gymnasium's ``AutoresetMode``. The default is
            Gymnasium's, so that ``vectorization_mode`` changes no result. A game that has ended then has a
            mask of zeros, and the next step ignores its action; "SameStep" has no such mask.
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
        positions = Positions()
        for game in self.games:
            game.share_positions(positions)
        self.threads = self._threads(threads)
        self._pool: ThreadPoolExecutor | None = None
        actions = int(self.single_action_space.n)  # type: ignore[attr-defined]
        self._columns = InfoColumns(actions)

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
        rows = self._each(lambda i: _begin(self.games[i], seeds[i], options), range(self.num_envs))
        self._env_obs, infos, _ = self._columns.gather(self.games, rows)
        for flags in (self._terminations, self._truncations, self._autoreset_envs):
            flags[:] = False
        return tuple(self._env_obs), infos

    def step(
        self, actions: Any
    ) -> tuple[tuple[str, ...], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], Info]:
        """Makes a move in every game; one that has ended begins anew, as ``autoreset_mode`` says."""
        whole = isinstance(actions, np.ndarray) and actions.ndim == 1 and actions.dtype.kind in "iu"
        moves = actions.tolist() if whole else _read_list("actions", actions, "one per game")
        if len(moves) != self.num_envs:
            raise ArgumentError(f"actions: {len(moves)} were given, allowed: {self.num_envs}, one per game")
        mode, over = self.autoreset_mode, self._autoreset_envs.nonzero()[0].tolist()
        if over and mode is AutoresetMode.DISABLED:
            raise ArgumentError(
                f"step: games {over} have ended and autoreset_mode is {mode.value!r}, allowed: after a reset "
                'with options={"reset_mask": …}'
            )
        if mode is AutoresetMode.SAME_STEP:
            over = []
        # All are read before a game moves: after an error, the caller may step again.
        for i in over:
            moves[i] = None
        if not whole:
            moves = [move if i in over else read_action(move) for i, move in enumerate(moves)]

        moved = self._play(moves)
        before: dict[int, Marked] | None = None
        final: Info = {}
        if mode is AutoresetMode.SAME_STEP:
            moved, before, final = self._begin_again(list(moved))
        self._env_obs, infos, marked = self._columns.gather(self.games, moved)
        rewards = np.zeros(self.num_envs)
        ended, cut = np.zeros(self.num_envs, np.bool_), np.zeros(self.num_envs, np.bool_)
        for i, (_, reward, was_cut, _, ending, _) in (marked if before is None else before).items():
            rewards[i] = reward
            if ending is not None and i not in over:
                ended[i], cut[i] = True, was_cut
        # Gymnasium's own reset of some games clears the flags, so that the caller has copies.
        self._autoreset_envs, self._truncations, self._terminations = ended, cut, ended > cut
        return tuple(self._env_obs), rewards, self._terminations.copy(), cut.copy(), final | infos

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
        seeds = _read_list("seed", seed, "None, a whole number or one per game")
        if len(seeds) != self.num_envs:
            raise ArgumentError(
                f"seed: {len(seeds)} seeds were given, allowed: {self.num_envs}, one per game"
            )
        return seeds

    def _play(self, moves: list[Any]) -> Iterable[Moved]:
        """Makes a move in every game; None begins the game anew. In one thread, each plays as it is read."""
        games = self.games
        if self.threads > 1:
            return self._each(
                lambda i: games[i].begin_next() if moves[i] is None else games[i].move(moves[i]),
                range(self.num_envs),
            )
        if None not in moves:
            return map(GameSpielEnv.move, games, moves)
        return (
            game.begin_next() if move is None else game.move(move)
            for game, move in zip(games, moves, strict=True)
        )

    def _begin_again(self, rows: list[Moved]) -> tuple[list[Moved], dict[int, Marked], Info]:
        """Resets the games that have ended.

        Returns:
            What all games show now, what was marked before, and the final texts and infos.
        """
        marked = {i: row for i, row in enumerate(rows) if not isinstance(row, GameTurn)}
        over = [i for i, row in marked.items() if row[4] is not None]
        if not over:
            return rows, marked, {}
        texts, infos, _ = InfoColumns(self._columns.actions).gather(
            [self.games[i] for i in over], [rows[i] for i in over]
        )
        final = np.full(self.num_envs, None, dtype=object)
        there = np.zeros(self.num_envs, np.bool_)
        final[over], there[over] = texts, True
        for i, row in zip(over, self._each(lambda i: self.games[i].begin_next(), over), strict=True):
            rows[i] = row
        ends = {"final_obs": final, "final_info": spread(infos, over, self.num_envs)}
        return rows, marked, {**ends, "_final_obs": there, "_final_info": there.copy()}

    def _threads(self, threads: int | None) -> int:
        if threads is not None:
            return check_least("threads", threads, 1)
        if self.games[0].waits:
            return min(self.num_envs, MOST_WAITING)
        if self.games[0].searches:
            return min(self.num_envs, count_cores())
        return 1

    def _each(self, call: Callable[[int], T], indices: Iterable[int]) -> list[T]:
        """Returns the calls' results in order; the calls run in threads, if there are several."""
        if self.threads == 1:
            return [call(i) for i in indices]
        if self._pool is None:
            name = type(self).__name__
            self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix=name, initializer=share_cores)
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


def _begin(game: GameSpielEnv, seed: int | None, options: Info | None) -> Moved:
    game.restart(seed, options)
    return game.first_turn()


def _read_list(name: str, values: Any, allowed: str) -> list[Any]:
    try:
        return list(values)
    except TypeError as error:
        raise ArgumentError(f"{name}: {quote(values)} was given, allowed: {allowed}") from error
