"""The infos of a batch of games, gathered column by column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from game_gym.backends import Ending, GameTurn
from game_gym.env import Facts, GameSpielEnv, Marked
from task_gym.contract import SUCCESS, illegal_info

Info: TypeAlias = dict[str, Any]

Moved: TypeAlias = GameTurn | Marked
"""The result of ``GameSpielEnv.move``."""


class InfoColumns:
    """Gathers games' infos in one dictionary of arrays, as Gymnasium's ``_add_info`` does row by row.

    A row that lacks a key has zero or None in the key's array, and False in the array ``_key``.

    Args:
        actions: The width of the masks.

    Attributes:
        actions: As given.
    """

    def __init__(self, actions: int) -> None:
        self.actions = actions
        self._cache: dict[str, tuple[Sequence[Any], NDArray[Any]]] = {}  # by key: see _keep
        self._facts: list[Facts] = []
        self._fact_columns: list[NDArray[Any]] = []  # see _update_facts

    def gather(
        self, games: Sequence[GameSpielEnv], moved: Iterable[Moved]
    ) -> tuple[list[str], Info, dict[int, Marked]]:
        """Returns the texts and the infos of these games, and by place what says more than a turn.

        Args:
            games: All games of the batch.
            moved: What ``GameSpielEnv.move`` returns for each. If it plays as it is read, each game is read
                while it is still in the processor's cache.
        """
        count = len(games)
        marked: dict[int, Marked] = {}
        texts, facts = list[str](), list[Facts]()
        legal, names = list[list[int]](), list[list[str]]()
        seats, turns = list[int](), list[int]()
        for game, row in zip(games, moved, strict=True):
            if isinstance(row, GameTurn):
                turn = row
                if turn.opponent_illegal is not None:
                    marked[len(texts)] = turn, 0.0, False, turn.reward, None, None
            else:
                turn, marked[len(texts)] = row[0], row
            texts.append(turn.text)
            names.append(turn.names.copy())
            legal.append(turn.legal.copy())
            seats.append(turn.seat)
            turns.append(game.moves)
            facts.append(game.facts)
        ids, seeds, game_names, opponents = self._update_facts(facts)
        columns = {
            "action_mask": mark_legal(legal, self.actions),
            "legal_actions": np.fromiter(legal, object, count),
            "admissible_commands": np.fromiter(names, object, count),
            "task_id": ids.copy(),
            "seed": seeds.copy(),
            "game": game_names.copy(),
            "seat": self._keep("seat", seats),
            "opponent": opponents.copy(),
            "turn": np.fromiter(turns, np.int64, count),
            "upstream_reward": self._rewards(marked, count),
        }
        infos = _mark_columns(columns, np.ones(count, np.bool_))
        if marked:
            _add_marked(infos, marked, count)
        return texts, infos, marked

    def _update_facts(self, facts: list[Facts]) -> list[NDArray[Any]]:
        """Returns the games' facts as four arrays, in which only those of new episodes are written."""
        before, columns = self._facts, self._fact_columns
        if len(before) != len(facts):
            self._fact_columns = columns = [column(values) for values in zip(*facts, strict=True)]
        elif facts != before:
            for i, (new, old) in enumerate(zip(facts, before, strict=True)):
                if new is not old:
                    for values, value in zip(columns, new, strict=True):
                        values[i] = value
        self._facts = facts
        return columns

    def _keep(self, key: str, values: Sequence[Any]) -> NDArray[Any]:
        """Does as ``column`` for values that are mostly those of the last step, and cannot be changed."""
        before = self._cache.get(key)
        if before is None or before[0] != values:
            before = self._cache[key] = values, column(values)
        return before[1].copy()

    def _rewards(self, marked: dict[int, Marked], count: int) -> NDArray[Any]:
        """Returns upstream's rewards, which are 0 in the rows that are not marked."""
        rewards = [0.0] * count
        for i, row in marked.items():
            rewards[i] = row[3]
        return self._keep("upstream_reward", rewards)


def mark_legal(legal: Sequence[Sequence[int]], actions: int) -> NDArray[np.int8]:
    """Returns masks, int8, shape (len(legal), actions), 1 = legal."""
    counts = list(map(len, legal))
    total = sum(counts)
    if total < 8 * len(counts):
        # Bytes are several times faster to set one by one than an array is to index.
        flags, first = bytearray(len(counts) * actions), 0
        for row in legal:
            for action in row:
                flags[first + action] = 1
            first += actions
        return np.frombuffer(flags, np.int8).reshape(-1, actions)
    if actions <= 256:
        places = np.frombuffer(b"".join(map(bytes, legal)), np.uint8).astype(np.int64)
    else:
        places = np.fromiter(chain.from_iterable(legal), np.int64, total)
    places += np.repeat(np.arange(0, len(counts) * actions, actions), counts)
    mask = np.zeros(len(counts) * actions, np.int8)
    mask[places] = 1
    return mask.reshape(-1, actions)


def spread(infos: Info, indices: Sequence[int], count: int) -> Info:
    """Returns infos of ``count`` games from those of some of them; the others have none."""
    columns: Info = {}
    for key, value in infos.items():
        if isinstance(value, dict):
            columns[key] = spread(value, indices, count)
        else:
            shape = count, *value.shape[1:]
            columns[key] = array = (np.empty if value.dtype == object else np.zeros)(shape, value.dtype)
            array[indices] = value
    return columns


def _add_marked(infos: Info, marked: Mapping[int, Marked], count: int) -> None:
    """Adds what only some games have: what was illegal, and what is there at the end."""
    errors, faults, endings = {}, {}, {}
    for i, (turn, _, _, _, ending, illegal) in marked.items():
        if illegal is not None:
            errors[i] = {"error": illegal_info(illegal)["error"]}
        if turn.opponent_illegal is not None:
            faults[i] = {"opponent_illegal": turn.opponent_illegal}
        if ending is not None:
            endings[i] = ending
    infos.update(merge(errors, count))
    infos.update(merge(faults, count))
    if endings:
        infos.update(_gather_endings(endings, count))


def _gather_endings(endings: Mapping[int, Ending], count: int) -> Info:
    """Returns what ``Ending.info`` adds at the end of some games."""
    score, ended = [0.0] * count, bytearray(count)
    scores: list[Any] = [None] * count
    returns, result, history = scores.copy(), scores.copy(), scores.copy()
    for i, ending in endings.items():
        ended[i] = True
        scores[i], returns[i], history[i] = ending.scores, ending.returns, ending.history
        if type(ending.score) is not float or ending.fault or None in (scores[i], returns[i], history[i]):
            return merge({row: other.info() for row, other in endings.items()}, count)
        score[i], result[i] = ending.score, ending.result
    numbers = np.array(score)
    columns = {
        "score": numbers,
        "scores": np.fromiter(scores, object, count),
        "success": numbers > SUCCESS,
        "returns": np.fromiter(returns, object, count),
        "result": np.fromiter(result, object, count),
        "history": np.fromiter(history, object, count),
    }
    return _mark_columns(columns, np.frombuffer(ended, np.bool_))


def _mark_columns(columns: Mapping[str, NDArray[Any]], there: NDArray[np.bool_]) -> Info:
    """Returns the columns, each followed by an array of the rows that have it."""
    infos: Info = {}
    for key, values in columns.items():
        infos[key], infos[f"_{key}"] = values, there.copy()
    return infos


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
