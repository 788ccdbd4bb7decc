"""Task ids, ``game_index * 100_000_000 + config_id``, and the tasks that a set of them may draw.

A task id names a game of the table (``TABLE[game_index % 22]``) and its parameters, which repeat with the
declaration's period in the config id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from game_gym.games import DECLARED, TABLE, find_game
from game_gym.spec import GameSpec, Variant, load_variant
from game_gym.upstream_texts import with_upstream_texts
from task_gym.errors import ArgumentError, GameError, TaskIdError, quote
from task_gym.ids import TASK_LIMIT, IdRanges, check_task_id

CONFIGS = 100_000_000
"""Config ids per game index."""


@dataclass(frozen=True, slots=True)
class Task:
    """A game to play; ``task_id`` is None if the game was given by name."""

    task_id: int | None
    variant: Variant


def encode(game: str, config: int) -> int:
    """Returns the smallest task id of a table game with this config id, 0 <= config < 100_000_000."""
    if game not in TABLE:
        raise GameError(
            f"game: {game!r} was given, which is not in the task-id table; there: {', '.join(TABLE)}"
        )
    if not 0 <= config < CONFIGS:
        raise TaskIdError(f"config id: {config!r} was given, allowed: 0 … {CONFIGS - 1}")
    return TABLE.index(game) * CONFIGS + config


def split(task_id: Any) -> tuple[str, int]:
    """Returns (game name, config id) of a task id, for any of the table's games."""
    index, config = divmod(check_task_id(task_id, TASK_LIMIT), CONFIGS)
    return TABLE[index % len(TABLE)], config


def decode(task_id: Any) -> Task:
    """Returns the task of a task id.

    Raises:
        TaskIdError: the id is not a whole number in range.
    """
    game, config = split(task_id)
    return Task(int(task_id), _variant(with_upstream_texts(DECLARED[game]), config))


@lru_cache(maxsize=1024)
def _variant_of_period(spec: GameSpec, config: int) -> Variant:
    return load_variant(spec, spec.params(config))


def _variant(spec: GameSpec, config: int) -> Variant:
    return _variant_of_period(spec, config % spec.variants)


class TaskSet:
    """The tasks that an environment may draw; ids and ranges are kept as given and never enumerated.

    Args:
        task_id: One task id.
        task_ids: A list of ids and (first, last) ranges, both ends included. Drawing is uniform over
            the ids; an id that is named twice is drawn twice as often.
        game: An OpenSpiel game by name.
        params: Its parameters.
        allow_files: Whether a parameter may name a file.

    Attributes:
        variants: Every game, with its parameters, that may be drawn.

    Raises:
        ArgumentError: not exactly one of ``task_id``, ``task_ids`` and ``game``; ``params`` without ``game``.
        TaskIdError: an id is out of range.
        GameError: the game cannot be played.
    """

    def __init__(
        self,
        task_id: int | None = None,
        task_ids: Sequence[int | Sequence[int]] | None = None,
        game: str | None = None,
        params: Mapping[str, Any] | None = None,
        allow_files: bool = False,
    ) -> None:
        arguments = {"task_id": task_id, "task_ids": task_ids, "game": game}
        named = [name for name, value in arguments.items() if value is not None]
        if len(named) != 1:
            raise ArgumentError(
                f"task: {', '.join(named) or 'nothing'} was given, allowed: exactly one of task_id, "
                "task_ids and game"
            )
        if params is not None and not isinstance(params, Mapping):
            raise ArgumentError(
                f"params: {quote(params)} was given, allowed: a mapping of names to values, as "
                "{'players': 2}"
            )
        if params is not None and game is None:
            raise ArgumentError(f"params: {params!r} was given with {named[0]}, allowed: with game only")
        self._named: Task | IdRanges
        if game is not None:
            # NumPy's numbers as Python's: a sweep may take its values from an array.
            plain = {
                name: value.item() if isinstance(value, np.generic) else value
                for name, value in (params or {}).items()
            }
            self._named = Task(
                None, load_variant(with_upstream_texts(find_game(game)), plain, allow_files=allow_files)
            )
        elif task_id is not None:
            self._named = decode(task_id)
        else:
            self._named = IdRanges(task_ids, TASK_LIMIT)
        self.variants: tuple[Variant, ...] = self._find_variants()

    def draw(self, generator: Callable[[], np.random.Generator]) -> int | None:
        """Returns a task id, uniformly, or None for a game by name; a single task draws nothing."""
        named = self._named
        return named.task_id if isinstance(named, Task) else named.draw(generator)

    def task(self, task_id: int | None) -> Task:
        """Returns the task of an id of the set."""
        named = self._named
        return named if isinstance(named, Task) else decode(task_id)

    def __contains__(self, task_id: Any) -> bool:
        if isinstance(self._named, Task):
            return self._named.task_id == check_task_id(task_id, TASK_LIMIT)
        return task_id in self._named

    def __str__(self) -> str:
        if isinstance(self._named, Task):
            return "the one game named" if self._named.task_id is None else str(self._named.task_id)
        return str(self._named)

    def _find_variants(self) -> tuple[Variant, ...]:
        if isinstance(self._named, Task):
            return (self._named.variant,)
        variants = (
            variant for first, last in self._named.ranges for variant in _variants_between(first, last)
        )
        return tuple(dict.fromkeys(variants))


def _variants_between(first: int, last: int) -> list[Variant]:
    """Returns the variants of a range of ids, looking at no more ids than there are variants."""
    first_index, last_index = first // CONFIGS, last // CONFIGS
    # The table repeats after 22 indices: whole blocks beyond that add nothing.
    whole = range(first_index + 1, min(last_index, first_index + 1 + len(TABLE)))
    variants = []
    for index in dict.fromkeys([first_index, *whole, last_index]):
        low = max(first - index * CONFIGS, 0)
        high = min(last - index * CONFIGS, CONFIGS - 1)
        spec = with_upstream_texts(DECLARED[TABLE[index % len(TABLE)]])
        variants += [_variant(spec, config) for config in range(low, min(high, low + spec.variants - 1) + 1)]
    return variants
