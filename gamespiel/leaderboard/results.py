"""A board's results from its episodes: scores with intervals, paired differences, ratings. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from gamespiel.comparison.analysis import Column, compare_columns, count_results
from gamespiel.leaderboard.agents import explain_absence_on, list_tasks
from gamespiel.leaderboard.benchmark import GAMES, TASK_NAMES, TRACE
from gamespiel.leaderboard.board import Board, Row
from gamespiel.statistics.families import adjust_by_holm, share_confidence
from gamespiel.statistics.means import CONFIDENCE, Estimate, estimate_mean, pool_equally
from gamespiel.statistics.ratings import bootstrap_ratings

KINDS: Mapping[str, tuple[str, ...]] = {
    "games": GAMES,
    "traces": tuple(task for task in TASK_NAMES if task.startswith(TRACE)),
}
"""The parts of a board: each has ratings and a mean of its own, in which its tasks have the same weight."""

BOUNDS = (0.0, 1.0)

RESAMPLES = 1000
"""Resamples of the ratings' intervals."""

Columns = dict[str, dict[str, Column]]
"""Task to agent to results."""


def summarize(board: Board) -> dict[str, Any]:
    """Returns a board's results as plain data.

    They follow from the episodes that count. A deal is one value: the mean over its seats and anchors. A deal
    with a fault is left out, and counted.
    """
    scores = {name: _read_deals(board, name) for name in board.entries}
    return {kind: _summarize_kind(board, tasks, scores) for kind, tasks in KINDS.items()}


Deals = dict[str, list[list[Row]]]
"""Task to deals to the records of a deal."""


def _read_deals(board: Board, name: str) -> Deals:
    found: Deals = {}
    for unit in board.list_counted(name):
        found.setdefault(unit[1], []).append(board.played[unit])
    return found


def _score_deal(rows: Sequence[Row]) -> tuple[float, ...] | None:
    """Returns the scores of a deal's episodes; None if one was a fault."""
    scores = [row["score"] for row in rows]
    return None if None in scores else tuple(map(float, scores))


def _summarize_kind(board: Board, tasks: Sequence[str], played: Mapping[str, Deals]) -> dict[str, Any]:
    entering = [
        name
        for name, entry in board.entries.items()
        if any(task in tasks for task in list_tasks(entry, board.track))
    ]
    columns = _make_columns(tasks, {name: played[name] for name in entering})
    agents = {name: _summarize_agent(board, name, tasks, columns, played[name]) for name in entering}
    counted = [name for name in entering if agents[name]["tasks_played"]]
    return {
        "agents": agents,
        "differences": _compare_all(counted, columns),
        "ratings": _rate(counted, columns, board),
    }


def _make_columns(tasks: Sequence[str], played: Mapping[str, Deals]) -> Columns:
    columns: Columns = {}
    for task in tasks:
        own = {}
        rounds = max((len(deals.get(task, [])) for deals in played.values()), default=0)
        for name, deals in played.items():
            seats: list[tuple[float, ...] | None] = [_score_deal(rows) for rows in deals.get(task, [])]
            seats += [None] * (rounds - len(seats))
            plain = tuple(None if scores is None else math.fsum(scores) / len(scores) for scores in seats)
            own[name] = Column(plain, plain, BOUNDS, None, tuple(seats))
        columns[task] = own
    return columns


def _estimate(values: Sequence[float]) -> Estimate:
    return estimate_mean(values, BOUNDS)


def _summarize_agent(
    board: Board, name: str, tasks: Sequence[str], columns: Columns, deals: Deals
) -> dict[str, Any]:
    cells, pooled = {}, []
    for task in tasks:
        reason = explain_absence_on(board.entries[name], task, board.track)
        if reason:
            cells[task] = {"refused": reason}
            continue
        kept = [value for value in columns[task][name].estimates if value is not None]
        rows = [row for deal in deals.get(task, []) for row in deal]
        cell: dict[str, Any] = {
            "deals": len(kept),
            "episodes": len(rows),
            "faults": len(deals.get(task, [])) - len(kept),
        }
        if kept:
            estimate = _estimate(kept)
            pooled.append(estimate)
            cell |= _describe(estimate)
        cell["against"] = _score_anchors(deals.get(task, []))
        cells[task] = cell
    found: dict[str, Any] = {"tasks": cells, "tasks_played": len(pooled)}
    if pooled:
        found |= _describe(pool_equally(pooled))
    return found


def _describe(estimate: Estimate, confidence: float = CONFIDENCE) -> dict[str, Any]:
    low, high = estimate.interval(confidence)
    return {"score": estimate.mean, "low": max(low, BOUNDS[0]), "high": min(high, BOUNDS[1])}


def _score_anchors(deals: Sequence[Sequence[Row]]) -> dict[str, dict[str, Any]]:
    """Returns the mean score against each anchor, over the deals without faults there: the raw matrix.

    Anchors go by their place, because a search has another budget in each of a game's variants.
    """
    against: dict[int, list[float]] = {}
    names: dict[int, str] = {}
    for rows in deals:
        opponents = list(dict.fromkeys(row["opponent"] for row in rows))
        for place, opponent in enumerate(opponents):
            names.setdefault(place, opponent)
            own = [row["score"] for row in rows if row["opponent"] == opponent]
            if None not in own:
                against.setdefault(place, []).append(math.fsum(own) / len(own))
    return {
        names[place]: {"score": math.fsum(values) / len(values), "deals": len(values)}
        for place, values in sorted(against.items())
    }


def _compare_all(names: Sequence[str], columns: Columns) -> list[dict[str, Any]]:
    """Returns the paired differences over the tasks that both have; their intervals are right together."""
    found = []
    for first, second in combinations(names, 2):
        singles = [compare_columns(first, second, task, own) for task, own in columns.items()]
        singles = [one for one in singles if one.values]
        if singles:
            bounds = -1.0, 1.0
            found.append(
                (first, second, len(singles), pool_equally([one.estimate for one in singles]), bounds)
            )
    confidence = share_confidence(CONFIDENCE, len(found))
    adjusted = adjust_by_holm([one[3].p_value() for one in found])
    rows = []
    for (first, second, count, estimate, bounds), p_value in zip(found, adjusted, strict=True):
        low, high = estimate.interval(confidence)
        rows.append(
            {
                "first": first,
                "second": second,
                "tasks": count,
                "deals": estimate.deals,
                "difference": estimate.mean,
                "low": max(low, bounds[0]),
                "high": min(high, bounds[1]),
                "p_value": p_value,
            }
        )
    return rows


def _rate(names: Sequence[str], columns: Columns, board: Board) -> dict[str, Any] | None:
    """Returns ratings, as duplicate bridge has them, with the raw results; None for fewer than two agents.

    An agent with one deal of a task has no interval: nothing shows how much another deal would differ.
    """
    if len(names) < 2:
        return None
    own = {task: {name: column[name] for name in names} for task, column in columns.items()}
    wins, ties = [], []
    for column in own.values():
        won, tied = count_results(names, column)
        met = (won + tied).any(axis=(1, 2))  # deals that at least two agents played
        if met.any():
            wins.append(won[met])
            ties.append(tied[met])
    if not wins:
        return None
    rated = bootstrap_ratings(wins, ties, board.deals.draw_seed("ratings"), RESAMPLES, few=True)
    ends_of = [(float(low), float(high)) for low, high in rated.intervals]
    sure = [_has_several(name, own) for name in names]
    return {
        "players": list(names),
        "points": [float(value) for value in rated.ratings.points],
        "low": [ends[0] if several else None for ends, several in zip(ends_of, sure, strict=True)],
        "high": [ends[1] if several else None for ends, several in zip(ends_of, sure, strict=True)],
        "ties": float(rated.ratings.ties),
        "penalised": bool(rated.ratings.penalised),
        "penalised_share": float(rated.penalised_share),
        "won": sum(won.sum(axis=0) for won in wins).tolist(),
        "tied": sum(tied.sum(axis=0) for tied in ties).tolist(),
    }


def _has_several(name: str, columns: Columns) -> bool:
    """Returns whether an agent has at least two deals of each task that it played."""
    counts = [len(column[name].scores) - column[name].scores.count(None) for column in columns.values()]
    return all(count > 1 for count in counts if count)
