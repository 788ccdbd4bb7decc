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

from game_gym.backends import Ending, Turn
from game_gym.env import GameSpielEnv, Moved
from task_gym.checks import check_least, check_names, is_whole, read_action
from task_gym.contract import illegal_info
from task_gym.cores import count_cores, share_cores
from task_gym.errors import ArgumentError, check_choice, shown
from task_gym.remote.settings import DEFAULTS

MOST_WAITING = 64
"""The most threads that wait for a server, unless more are asked for."""

Info = dict[str, Any]
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
        self.threads = self._threads(threads)
        self._pool: ThreadPoolExecutor | None = None
        self._all = np.ones(num_envs, dtype=np.bool_)
        self._last: dict[str, tuple[Sequence[Any], Any]] = {}  # by key: see _lasting
        self._facts: tuple[Sequence[Any], tuple[Sequence[Any], ...]] = ((), ())  # see _list_facts

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
        anew = set(over) if mode is AutoresetMode.NEXT_STEP else set()
        # All are read before a game moves: after an error, the caller may step again.
        moves: list[Any] = given
        if not whole:
            moves = [None if i in anew else read_action(move) for i, move in enumerate(given)]

        rows = self._play(moves, anew)
        turns, rewards, cut, _, endings, _ = zip(*rows, strict=True)
        self._env_obs = [turn.text for turn in turns]
        ended = [ending is not None for ending in endings]
        for i in anew:
            ended[i] = False
        # Gymnasium's own reset of some games clears the flags, so that the caller has copies.
        self._autoreset_envs = np.array(ended, dtype=np.bool_)
        self._truncations = np.array(cut, dtype=np.bool_)
        self._terminations = self._autoreset_envs > self._truncations
        flags = self._terminations.copy(), self._truncations.copy()
        final = self._begin_again(rows) if mode is AutoresetMode.SAME_STEP else {}
        return tuple(self._env_obs), np.array(rewards, dtype=np.float64), *flags, final | self._infos(rows)

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

    def _play(self, moves: list[Any], anew: set[int]) -> list[Moved]:
        """Makes a move in every game, or begins it anew."""
        if self.threads > 1:
            games = self.games
            return self._each(
                lambda i: self._begun(i) if i in anew else games[i].move(moves[i]), range(self.num_envs)
            )
        if not anew:
            return [game.move(move) for game, move in zip(self.games, moves, strict=True)]
        return [self._begun(i) if i in anew else game.move(moves[i]) for i, game in enumerate(self.games)]

    def _begun(self, i: int, seed: int | None = None, options: Info | None = None) -> Moved:
        """Begins an episode in a game; one that is over at once has an ending."""
        game = self.games[i]
        game.restart(seed, options)
        turn = game.turn
        assert turn is not None
        upstream = 0.0 if turn.ending is None else turn.reward
        return turn, 0.0, False, upstream, turn.ending, None

    def _begin_again(self, rows: list[Moved]) -> Info:
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

    def _infos(self, rows: Sequence[Moved], indices: list[int] | None = None) -> Info:
        """Returns one dictionary of arrays, as Gymnasium's ``_add_info`` makes one, but column by column.

        Where a game has no such key, the array has zero or None, and ``_key`` False.

        Args:
            rows: One per game, or one per index.
            indices: The games that have one; None for all, in order.
        """
        turns: tuple[Turn, ...]
        turns, _, _, upstream, endings, illegal = zip(*rows, strict=True)
        games = self.games if indices is None else [self.games[i] for i in indices]
        there = self._all if indices is None else self._there(indices)
        ids, seeds, names, opponents = self._list_facts(games)
        infos = {
            "action_mask": self._masks(turns, indices),
            "_action_mask": there.copy(),
            "legal_actions": self._column([turn.legal.copy() for turn in turns], indices),
            "_legal_actions": there.copy(),
            "admissible_commands": self._column([turn.names.copy() for turn in turns], indices),
            "_admissible_commands": there.copy(),
            "task_id": self._lasting("task_id", ids, indices),
            "_task_id": there.copy(),
            "seed": self._lasting("seed", seeds, indices),
            "_seed": there.copy(),
            "game": self._lasting("game", names, indices),
            "_game": there.copy(),
            "seat": self._lasting("seat", [turn.seat for turn in turns], indices),
            "_seat": there.copy(),
            "opponent": self._lasting("opponent", opponents, indices),
            "_opponent": there.copy(),
            "turn": self._column([game.moves for game in games], indices),
            "_turn": there.copy(),
            "upstream_reward": self._lasting("upstream_reward", upstream, indices),
            "_upstream_reward": there.copy(),
        }
        faults = [turn.opponent_illegal for turn in turns]
        if (
            endings.count(None) < len(rows)
            or illegal.count(None) < len(rows)
            or any(fault is not None for fault in faults)
        ):
            infos.update(self._rare(endings, illegal, faults, indices))
        return infos

    def _rare(
        self,
        endings: Sequence[Ending | None],
        illegal: Sequence[str | None],
        faults: Sequence[int | None],
        indices: list[int] | None,
    ) -> Info:
        """Returns the part of ``_infos`` that only some games have: at the end, and after illegal actions."""
        more: dict[int, Info] = {}
        for place, (ending, message, fault) in enumerate(zip(endings, illegal, faults, strict=True)):
            if ending is None and message is None and fault is None:
                continue
            own = {} if message is None else {"error": illegal_info(message)["error"]}
            if fault is not None:
                own["opponent_illegal"] = fault
            if ending is not None:
                own.update(ending.info())
            more[place if indices is None else indices[place]] = own
        return self._together(more)

    def _list_facts(self, games: Sequence[GameSpielEnv]) -> tuple[Sequence[Any], ...]:
        """Returns the games' facts column by column; they are the last ones if no episode has begun since."""
        facts = [game.facts for game in games]
        if facts != self._facts[0]:
            self._facts = facts, tuple(zip(*facts, strict=True))
        return self._facts[1]

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

    def _there(self, indices: Sequence[int]) -> NDArray[np.bool_]:
        """Returns an array that is True for these games."""
        flags = bytearray(self.num_envs)
        for i in indices:
            flags[i] = 1
        return np.frombuffer(flags, np.bool_)

    def _lasting(self, key: str, values: Sequence[Any], indices: Sequence[int] | None) -> Any:
        """Does as ``_column`` for values that are mostly those of the last step, and cannot be changed."""
        if indices is not None:
            return self._column(values, indices)
        before = self._last.get(key)
        if before is None or before[0] != values:
            before = self._last[key] = values, self._column(values)
        return before[1].copy()

    def _together(self, rows: Mapping[int, Info]) -> Info:
        """Returns one dictionary of arrays, as ``_infos`` does, of what some games have to tell."""
        if not rows:
            return {}
        owners: dict[str, list[int]] = {}  # the games of each key
        different = {tuple(row) for row in rows.values()}
        if len(different) == 1:
            every = list(rows)
            owners = {key: every for key in different.pop()}
        else:
            for i, row in rows.items():
                for key in row:
                    owners.setdefault(key, []).append(i)
        infos: Info = {}
        last: list[int] | None = None
        there = self._all
        for key, indices in owners.items():
            if indices is not last:
                last, there = indices, self._there(indices)
            infos[key] = self._column([rows[i][key] for i in indices], indices)
            infos[f"_{key}"] = there.copy()
        return infos

    def _column(self, values: Sequence[Any], indices: Sequence[int] | None = None) -> Any:
        """Returns the values of one key as an array, or as a dictionary of arrays.

        Args:
            values: One per game, or one per index.
            indices: The games that have one; None for all, in order.
        """
        kind = type(values[0])
        if kind is dict:
            found: Info = {}
            for i, value in zip(range(self.num_envs) if indices is None else indices, values, strict=True):
                self._add_info(found, value, i)
            return found
        is_number = kind in (int, float, bool) and None not in values  # a score is None after a fault
        if indices is None:
            if is_number:
                return np.array(values, dtype=kind)
            return np.fromiter(values, dtype=object, count=len(values))
        array = np.zeros(self.num_envs, kind) if is_number else np.empty(self.num_envs, object)  # None
        for i, value in zip(indices, values, strict=True):
            array[i] = value
        return array


def _listed(name: str, given: Any, allowed: str) -> list[Any]:
    try:
        return list(given)
    except TypeError as error:
        raise ArgumentError(f"{name}: {shown(given)} was given, allowed: {allowed}") from error
