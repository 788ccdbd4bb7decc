"""The infos of a batch of games, gathered column by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from game_gym.backends import Ending, Turn
from game_gym.env import GameSpielEnv
from task_gym.contract import SUCCESS, illegal_info

Info: TypeAlias = dict[str, Any]

Columns: TypeAlias = tuple[
    Sequence[Turn],
    Sequence[float],
    Sequence[bool],
    Sequence[float],
    Sequence[Ending | None],
    Sequence[str | None],
]
"""What ``GameSpielEnv.move`` returned for several games, column by column."""


class InfoColumns:
    """Gathers games' infos in one dictionary of arrays, as Gymnasium's ``_add_info`` does row by row.

    A row that lacks a key has zero or None in the key's array, and False in the array ``_key``.

    Args:
        actions: The width of the masks.
    """

    def __init__(self, actions: int) -> None:
        self._actions = actions
        self._kept: dict[str, tuple[Sequence[Any], NDArray[Any]]] = {}  # by key: see _keep
        self._facts: tuple[Sequence[Any], list[Sequence[Any]]] = ([], [])  # see _list_facts

    def gather(self, games: Sequence[GameSpielEnv], columns: Columns) -> Info:
        """Returns the infos of these games, of which ``columns`` has a row each."""
        turns, _, _, upstream, endings, illegal = columns
        count = len(turns)
        there = np.ones(count, np.bool_)
        ids, seeds, names, opponents = self._list_facts(games)
        infos = {
            "action_mask": self._masks(turns),
            "_action_mask": there,
            "legal_actions": np.fromiter([turn.legal.copy() for turn in turns], object, count),
            "_legal_actions": there.copy(),
            "admissible_commands": np.fromiter([turn.names.copy() for turn in turns], object, count),
            "_admissible_commands": there.copy(),
            "task_id": self._keep("task_id", ids),
            "_task_id": there.copy(),
            "seed": self._keep("seed", seeds),
            "_seed": there.copy(),
            "game": self._keep("game", names),
            "_game": there.copy(),
            "seat": self._keep("seat", [turn.seat for turn in turns]),
            "_seat": there.copy(),
            "opponent": self._keep("opponent", opponents),
            "_opponent": there.copy(),
            "turn": np.fromiter([game.moves for game in games], np.int64, count),
            "_turn": there.copy(),
            "upstream_reward": self._keep("upstream_reward", upstream),
            "_upstream_reward": there.copy(),
        }
        if illegal.count(None) < count:
            errors = {i: {"error": illegal_info(message)["error"]} for i, message in _list_given(illegal)}
            infos.update(merge(errors, count))
        faults = [turn.opponent_illegal for turn in turns]
        if faults.count(None) < count:
            infos.update(merge({i: {"opponent_illegal": fault} for i, fault in _list_given(faults)}, count))
        if endings.count(None) < count:
            infos.update(_gather_endings(endings))
        return infos

    def _list_facts(self, games: Sequence[GameSpielEnv]) -> list[Sequence[Any]]:
        """Returns the games' facts column by column; they are the last ones if no episode has begun since."""
        facts = [game.facts for game in games]
        if facts != self._facts[0]:
            self._facts = facts, list(zip(*facts, strict=True))
        return self._facts[1]

    def _keep(self, key: str, values: Sequence[Any]) -> NDArray[Any]:
        """Does as ``column`` for values that are mostly those of the last step, and cannot be changed."""
        before = self._kept.get(key)
        if before is None or (before[0] is not values and before[0] != values):
            before = self._kept[key] = values, column(values)
        return before[1].copy()

    def _masks(self, turns: Sequence[Turn]) -> NDArray[np.int8]:
        """Returns the masks of turns: int8, shape (turns, actions)."""
        width = self._actions
        # Bytes are several times faster to set one by one than an array is to index.
        mask, first = bytearray(len(turns) * width), 0
        for turn in turns:
            for action in turn.legal:
                mask[first + action] = 1
            first += width
        return np.frombuffer(mask, np.int8).reshape(-1, width)


def spread(infos: Info, indices: Sequence[int], count: int) -> Info:
    """Returns infos of ``count`` games from those of some of them; the others have none."""
    found: Info = {}
    for key, value in infos.items():
        if isinstance(value, dict):
            found[key] = spread(value, indices, count)
        else:
            shape = count, *value.shape[1:]
            found[key] = array = (np.empty if value.dtype == object else np.zeros)(shape, value.dtype)
            array[indices] = value
    return found


def _gather_endings(endings: Sequence[Ending | None]) -> Info:
    """Returns what ``Ending.info`` adds at the end of some games."""
    count = len(endings)
    score = [0.0] * count
    scores: list[Any] = [None] * count
    returns, result, history = scores.copy(), scores.copy(), scores.copy()
    for i, ending in enumerate(endings):
        if ending is None:
            continue
        scores[i], returns[i], history[i] = ending.scores, ending.returns, ending.history
        if type(ending.score) is not float or ending.fault or None in (scores[i], returns[i], history[i]):
            return merge({row: other.info() for row, other in _list_given(endings)}, count)
        score[i], result[i] = ending.score, ending.result
    there = np.frombuffer(bytearray([ending is not None for ending in endings]), np.bool_)
    numbers = np.array(score)
    return {
        "score": numbers,
        "_score": there,
        "scores": np.fromiter(scores, object, count),
        "_scores": there.copy(),
        "success": numbers > SUCCESS,
        "_success": there.copy(),
        "returns": np.fromiter(returns, object, count),
        "_returns": there.copy(),
        "result": np.fromiter(result, object, count),
        "_result": there.copy(),
        "history": np.fromiter(history, object, count),
        "_history": there.copy(),
    }


def _list_given(values: Sequence[Any]) -> list[tuple[int, Any]]:
    """Returns the values that are not None, with their places."""
    return [(i, value) for i, value in enumerate(values) if value is not None]


def merge(rows: Mapping[int, Info], count: int) -> Info:
    """Returns one dictionary of arrays from the infos of some of ``count`` games, whatever their keys are."""
    owners: dict[str, list[int]] = {}  # the games of each key
    for i, row in rows.items():
        for key in row:
            owners.setdefault(key, []).append(i)
    infos: Info = {}
    for key, indices in owners.items():
        values = [rows[i][key] for i in indices]
        there = np.zeros(count, np.bool_)
        there[indices] = True
        if type(values[0]) is dict:
            infos[key] = merge(dict(zip(indices, values, strict=True)), count)
        else:
            infos[key] = spread({key: column(values)}, indices, count)[key]
        infos[f"_{key}"] = there
    return infos


def column(values: Sequence[Any]) -> NDArray[Any]:
    """Returns values as an array of numbers, or of objects if they are none or one is None."""
    kind = type(values[0])
    if kind in (int, float, bool) and None not in values:  # a score is None after a fault
        return np.array(values, dtype=kind)
    return np.fromiter(values, dtype=object, count=len(values))
