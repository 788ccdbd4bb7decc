"""A board's results from its episodes: scores with intervals, paired differences, ratings. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import combinations
from typing import Any

import numpy as np

from game_gym.exact import OPPONENTS, list_regrets
from game_gym.task import encode
from game_gym.transcript import positions
from gamespiel.measure.board.agents import explain_absence, list_tasks
from gamespiel.measure.board.benchmark import GAMES, SCALES, TASK_NAMES, TRACE, load_task
from gamespiel.measure.board.file import TOKENS, Board
from gamespiel.measure.differences import (
    Column,
    compare_columns,
    finish_family,
    pool_differences,
    share_by_entry,
)
from gamespiel.measure.journal import Row
from gamespiel.measure.means import Estimate, estimate_mean, pool_equally
from gamespiel.measure.ratings import Meetings, rate, rate_games, rate_meetings
from task_gym.errors import ArgumentError, HistoryError

KINDS: Mapping[str, tuple[str, ...]] = {
    "games": GAMES,
    "traces": tuple(task for task in TASK_NAMES if task.startswith(TRACE)),
}
"""The parts of a board: each has ratings and a mean of its own, in which its tasks have the same weight."""

BOUNDS = (0.0, 1.0)

SOLVED = "leduc_poker"
"""The game whose tree is small enough to value every move against a policy that is known."""

MOST_FAULTS = 0.05
"""The share of an agent's deals that may be left out for faults, and one may in any case."""

Columns = dict[str, dict[str, Column]]
"""Task to agent to results."""


def summarize(board: Board) -> dict[str, Any]:
    """Returns a board's results as plain data.

    They follow from the episodes that count. A deal is one value: the mean over its seats and anchors. A deal
    with a fault is left out, and counted. If more than ``MOST_FAULTS`` of an agent's deals have one, its
    faults are losses: whoever can steer a game into a fault must not gain by it. In a meeting it is
    whoever was to move that loses.
    """
    deals = {name: _read_deals(board, name) for name in board.agents}
    results = {kind: _summarize_kind(board, tasks, deals) for kind, tasks in KINDS.items()}
    if board.meetings:
        results["games"]["meetings"] = _summarize_meetings(board, deals)
    return results


Deals = dict[str, list[list[Row]]]
"""Task to deals to the records of a deal."""


def _read_deals(board: Board, name: str) -> Deals:
    """Returns the deals of an agent or a meeting, with faults as losses if they are too many."""
    units = board.list_counted(name)
    faulty = sum(any(row["score"] is None for row in board.played[unit]) for unit in units)
    counted = faulty > max(1, MOST_FAULTS * len(units))
    meets = board.entries[name]["kind"] == "meeting"
    deals: Deals = {}
    for unit in units:
        rows = [
            row | {"score": _score_fault(row) if meets else 0.0} if counted and row["score"] is None else row
            for row in board.played[unit]
        ]
        deals.setdefault(unit[1], []).append(rows)
    return deals


def _score_fault(row: Row) -> float:
    """Returns the first agent's score of a meeting that broke: a loss for whoever was to move, if one was."""
    try:
        *_, (state, _) = positions(load_task(row["task_id"]).variant, row["history"] or ())
    except HistoryError:  # a stranger's may be no game: verify says so
        return 0.5
    player = int(state.current_player())
    return float(player != row["seat"]) if player in (0, 1) else 0.5


def _summarize_kind(board: Board, tasks: Sequence[str], played: Mapping[str, Deals]) -> dict[str, Any]:
    entering = [
        name
        for name, entry in board.agents.items()
        if any(task in tasks for task in list_tasks(entry, board.track))
    ]
    columns = _make_columns(tasks, {name: played[name] for name in entering})
    agents = {name: _summarize_agent(board, name, tasks, columns, played[name]) for name in entering}
    counted = [name for name in entering if agents[name]["tasks_played"]]
    places = {name: place for place, name in enumerate(board.agents, 1)}
    return {"agents": agents, "differences": _compare_all(counted, columns, places, played)}


def _make_columns(tasks: Sequence[str], played: Mapping[str, Deals]) -> Columns:
    columns: Columns = {}
    for task in tasks:
        rounds = max((len(deals.get(task, [])) for deals in played.values()), default=0)
        columns[task] = {}
        for name, deals in played.items():
            scores = [_score_deal(rows) for rows in deals.get(task, [])]
            values = (*scores, *[None] * (rounds - len(scores)))
            columns[task][name] = Column(values, values, BOUNDS)
    return columns


def _score_deal(rows: Sequence[Row]) -> float | None:
    """Returns the mean score of a deal's episodes; None if one was a fault."""
    scores = [row["score"] for row in rows]
    return None if None in scores else math.fsum(map(float, scores)) / len(scores)


def _summarize_agent(
    board: Board, name: str, tasks: Sequence[str], columns: Columns, deals: Deals
) -> dict[str, Any]:
    cells, pooled = {}, []
    for task in tasks:
        if reason := explain_absence(board.entries[name], task, board.track):
            cells[task] = {"refused": reason}
            continue
        values = [value for value in columns[task][name].estimates if value is not None]
        rows = [row for deal in deals.get(task, []) for row in deal]
        cell: dict[str, Any] = {
            "deals": len(values),
            "episodes": len(rows),
            "faults": sum(row["result"] == "fault" for row in rows),
        }
        if values:
            estimate = estimate_mean(values, BOUNDS)
            pooled.append(estimate)
            cell |= _describe(estimate)
        cell["against"] = _score_anchors(deals.get(task, []))
        cells[task] = cell
    planned = board.rounds * sum(task in cells for task in board.list_tasks(name))
    counted = sum(len(deals.get(task, [])) for task in tasks)
    summary: dict[str, Any] = {"tasks": cells, "tasks_played": len(pooled), "missing": planned - counted}
    costs = [row["cost"] for task in tasks for deal in deals.get(task, []) for row in deal if "cost" in row]
    if costs:
        summary["cost"] = _sum_costs(costs)
    regrets = list(_list_regrets(deals.get(SOLVED, []))) if SOLVED in tasks else []
    if regrets:
        summary["regret"] = {"mean": math.fsum(regrets) / len(regrets), "moves": len(regrets)}
    if pooled:
        summary |= _describe(pool_equally(pooled)) | {"rating": _rate(board, name, tasks, deals)}
    return summary


def _summarize_meetings(board: Board, played: Mapping[str, Deals]) -> dict[str, Any]:
    """Returns the scores of agents against each other, and the ratings that follow from these.

    A deal is one value: the mean over both seats.

    Args:
        board: The board.
        played: The deals of each agent against the anchors.
    """
    pairs, games = {}, dict[str, dict[tuple[str, str], list[float | None]]]()
    for name, entry in board.meetings.items():
        deals = _read_deals(board, name)
        values = {task: [_score_deal(rows) for rows in played] for task, played in deals.items()}
        counted = {task: [value for value in scores if value is not None] for task, scores in values.items()}
        estimates = [estimate_mean(scores, BOUNDS) for scores in counted.values() if scores]
        planned = board.rounds * len(board.list_tasks(name))
        pair = {
            "tasks": len(estimates),
            "deals": sum(map(len, counted.values())),
            "faults": sum(row["result"] == "fault" for row in board.list_rows(name)),
            "missing": planned - sum(map(len, values.values())),
        }
        pairs[name] = pair | (_describe(pool_equally(estimates)) if estimates else {})
        for task, scores in values.items():
            games.setdefault(task, {})[entry["agent"], entry["rival"]] = scores
    rated = [_read_meetings(task, by_pair, played) for task, by_pair in games.items()]
    ratings = rate_meetings(rated, board.deals.draw_seed("ratings", "meetings"))
    return {"pairs": pairs, "ratings": {name: asdict(rating) for name, rating in sorted(ratings.items())}}


def _read_meetings(
    task: str, by_pair: Mapping[tuple[str, str], Sequence[float | None]], played: Mapping[str, Deals]
) -> Meetings:
    """Returns the meetings of one game, each deal with its two matches."""
    shape = max(map(len, by_pair.values())), len(by_pair)
    scores, counts = np.zeros(shape), np.zeros(shape)
    for place, values in enumerate(by_pair.values()):
        for deal, value in enumerate(values):
            if value is not None:
                scores[deal, place], counts[deal, place] = 2 * value, 2
    scale, known = SCALES[task], dict[str, float]()
    for name in sorted({name for pair in by_pair for name in pair}):
        sums = [_sum_scores(rows, len(scale.anchors)) for rows in played[name].get(task, [])]
        whole = [pair for pair in sums if pair is not None] or [([0.0], [0.0])]
        won, met = (np.sum([row[part] for row in whole], axis=0) for part in range(2))
        known[name] = float(rate(scale, won, met)) if met.any() else 0.0
    return Meetings(scale, known, list(by_pair), scores, counts)


def _list_regrets(deals: Sequence[Sequence[Row]]) -> Iterator[float]:
    """Yields what each of an agent's moves against an opponent of known policy lost to the best one.

    Faults are left out.
    """
    variant = load_task(encode(SOLVED, 0)).variant
    for row in (row for rows in deals for row in rows):
        if row["opponent"] in OPPONENTS and row["history"] is not None and row["result"] != "fault":
            with suppress(ArgumentError):  # a stranger's history may be no game: verify says so
                yield from list_regrets(variant, row["history"], row["seat"], row["opponent"])


def _sum_costs(costs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Returns seconds per episode, and tokens per episode of those whose tokens were counted."""
    tokens = [cost for cost in costs if all(name in cost for name in TOKENS)]
    means = {name: math.fsum(cost[name] for cost in tokens) / len(tokens) for name in TOKENS if tokens}
    seconds = math.fsum(cost["seconds"] for cost in costs) / len(costs)
    return means | {"seconds": seconds, "episodes": len(costs), "counted": len(tokens)}


def _describe(estimate: Estimate) -> dict[str, Any]:
    # Boards are extended, and read after every extension.
    low, high = estimate.interval(planned=False)
    return {"score": estimate.mean, "low": low, "high": high}


def _score_anchors(deals: Sequence[Sequence[Row]]) -> dict[str, dict[str, Any]]:
    """Returns the mean score against each anchor, over the deals without faults there.

    Anchors go by their place, because a search has another budget in each of a game's variants.
    """
    against: dict[int, list[float]] = {}
    names: dict[int, str] = {}
    for rows in deals:
        opponents = list(dict.fromkeys(row["opponent"] for row in rows))
        for place, opponent in enumerate(opponents):
            names.setdefault(place, opponent)
            scores = [row["score"] for row in rows if row["opponent"] == opponent]
            if None not in scores:
                against.setdefault(place, []).append(math.fsum(scores) / len(scores))
    return {
        names[place]: {"score": math.fsum(values) / len(values), "deals": len(values)}
        for place, values in sorted(against.items())
    }


def _compare_all(
    names: Sequence[str], columns: Columns, places: Mapping[str, int], played: Mapping[str, Deals]
) -> list[dict[str, Any]]:
    """Returns the paired differences over the tasks that both have.

    Their intervals are right together, and with those that were read before others entered.

    Args:
        names: The agents, in the order in which they entered.
        columns: Their results.
        places: The number of each among all agents of the board, from 1.
        played: Their deals.
    """
    differences, more, shares = [], list[dict[str, int]](), []
    for first, second in combinations(names, 2):
        singles = [compare_columns(first, second, task, by_agent) for task, by_agent in columns.items()]
        singles = [single for single in singles if single.estimate.deals]
        if singles:
            differences.append(pool_differences(singles))
            more.append({"tasks": len(singles), "faults": _count_faults(columns, played, first, second)})
            shares.append(share_by_entry(places[second]))
    keys = ("first", "second", "deals", "difference", "low", "high", "p_value")
    rows = [one.to_dict() for one in finish_family(differences, anytime=True, shares=shares)]
    return [{key: row[key] for key in keys} | counts for row, counts in zip(rows, more, strict=True)]


def _count_faults(columns: Columns, played: Mapping[str, Deals], first: str, second: str) -> int:
    """Returns the deals that two agents played, and that are left out because one of them had a fault."""
    count = 0
    for task, by_agent in columns.items():
        both = min(len(played[name].get(task, ())) for name in (first, second))
        pairs = zip(by_agent[first].estimates[:both], by_agent[second].estimates[:both], strict=True)
        count += sum(None in pair for pair in pairs)
    return count


def _rate(board: Board, name: str, tasks: Sequence[str], deals: Deals) -> dict[str, Any] | None:
    """Returns an agent's rating, from its scores against the anchors alone; None if no task has anchors."""
    rated = []
    for task in tasks:
        if (scale := SCALES.get(task)) is None:
            continue
        sums = [_sum_scores(rows, len(scale.anchors)) for rows in deals.get(task, [])]
        whole = [pair for pair in sums if pair is not None]
        if whole:
            rated.append((scale, np.asarray([won for won, _ in whole]), np.asarray([n for _, n in whole])))
    if not rated:
        return None
    scales, scores, counts = zip(*rated, strict=True)
    return asdict(rate_games(scales, scores, counts, board.deals.draw_seed("ratings", name)))


def _sum_scores(rows: Sequence[Row], anchors: int) -> tuple[list[float], list[float]] | None:
    """Returns the sums of a deal's scores against each anchor, and their numbers; None if one was a fault."""
    if any(row["score"] is None for row in rows):
        return None
    per = len(rows) // anchors  # an anchor meets the agent from every seat, one anchor after the other
    parts = [rows[start : start + per] for start in range(0, len(rows), per)]
    return [math.fsum(row["score"] for row in part) for part in parts], [float(per)] * anchors
