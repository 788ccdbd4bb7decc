"""The episodes of a board's file, played again in one process or several."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

from gamespiel.measure.board.benchmark import TRACE, DealSet, is_search, load_task
from gamespiel.measure.board.episodes import (
    choose_output,
    count_outputs,
    make_baseline,
    make_row,
    pick_output,
)
from gamespiel.measure.board.replays import (
    ReplayError,
    check_chances,
    find_first_difference,
    replay_match,
    replay_meeting,
    replay_replies,
    replay_written,
)
from gamespiel.measure.journal import Row
from gamespiel.measure.play import Match
from gamespiel.tracks import MASKED, UNLISTED
from task_gym.errors import TaskGymError
from task_gym.opponents import opponent_searches


@dataclass(frozen=True)
class Job:
    """An episode to play again.

    Attributes:
        where: Its place, for messages.
        match: The episode.
        row: The record.
        entry: The board's entry of the agent, without its episodes.
        pair: The same of the two agents of a meeting; empty for others.
    """

    where: str
    match: Match
    row: Row
    entry: Mapping[str, Any]
    pair: tuple[Mapping[str, Any], ...] = ()

    @property
    def searches(self) -> bool:
        """Whether somebody in the episode searches."""
        if self.match.task.startswith(TRACE):
            return False
        if self.pair:
            return any(is_search(entry["agent"]) for entry in self.pair)
        opponent = self.match.opponent.replace("none", "random")
        return is_search(self.entry["agent"]) or opponent_searches(opponent)


def run_jobs(
    jobs: Sequence[Job], deals: DealSet, track: str, *, quick: bool, processes: int
) -> Iterator[tuple[int, str]]:
    """Plays episodes again; yields the place of each job and what is wrong with its episode.

    Args:
        jobs: The episodes, in the file's order. They are played in another one.
        deals: The deals.
        track: The board's track.
        quick: Whether moves of searches only have to be legal.
        processes: Processes that play.
    """

    def rank(place: int) -> tuple[bool, str, int, int]:
        # A deal's episodes follow each other in one process, which deals it or runs its program once. Faults
        # are first and apart: with ``quick`` they alone search.
        match, fault = jobs[place].match, jobs[place].row["result"] == "fault"
        return not fault, match.task, match.deal, place if fault else 0

    order = sorted(range(len(jobs)), key=rank)
    explain = partial(explain_episode, deals=deals, track=track, quick=quick)
    if processes == 1:
        yield from ((place, explain(jobs[place])) for place in order)
        return
    groups = [list(places) for _, places in groupby(order, key=rank)]
    # A game has functions, which go to no other process: it is found there by its task id.
    sent = [
        [replace(jobs[place], match=jobs[place].match._replace(game=None)) for place in places]
        for places in groups
    ]
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        for places, problems in zip(groups, pool.map(partial(_explain_each, explain), sent), strict=True):
            yield from zip(places, problems, strict=True)


def _explain_each(explain: Callable[[Job], str], jobs: Sequence[Job]) -> list[str]:
    return [explain(job) for job in jobs]


def explain_episode(job: Job, deals: DealSet, track: str, quick: bool) -> str:
    """Returns what is wrong with a recorded episode, after playing it again; "" if nothing is."""
    try:
        if job.match.game is None and job.match.task_id is not None and not job.match.task.startswith(TRACE):
            job = replace(job, match=job.match._replace(game=load_task(job.match.task_id)))
        return _compare(job.row, _play_again(job, deals, track, quick))
    except (TaskGymError, *UNPLAYABLE) as error:
        return " ".join(str(error).split())[:500]


UNPLAYABLE = (ValueError, LookupError, TypeError, OverflowError, RecursionError, RuntimeError, AssertionError)
"""Errors that the replay of a forged record can raise; OpenSpiel's are RuntimeErrors."""


def _play_again(job: Job, deals: DealSet, track: str, quick: bool) -> Row:
    match, row, entry = job.match, job.row, job.entry
    baseline = entry["kind"] == "baseline"
    _check_parts(job, track)
    search = not quick or row["result"] == "fault"  # a loss that is called a fault would leave the score
    if job.pair:
        lists = track != UNLISTED
        return replay_meeting(match, row, job.pair, deals, list_actions=lists, search=search)
    if not baseline and track != MASKED:
        if entry["kind"] != "endpoint":
            return replay_written(match, row, entry, search=search)
        return replay_replies(match, row, list_actions=track != UNLISTED, search=search)
    if match.task.startswith(TRACE):
        if baseline:
            return choose_output(match, entry["agent"], deals)
        check_chances(row["chances"], [count_outputs(match)])
        return pick_output(match, *row["history"]) | {"chances": row["chances"]}
    decides = baseline and (search or not is_search(entry["agent"]))
    agent = make_baseline(entry["agent"], match, deals) if decides else None
    ending = replay_match(match, row, agent, search=search)
    return make_row(match, ending, chances=row.get("chances"), error=ending.fault or None)


def _check_parts(job: Job, track: str) -> None:
    """Raises ReplayError unless a record has the parts that an agent of its kind leaves."""
    row, kind, match = job.row, job.entry["kind"], job.match
    has = {key for key in ("chances", "replies") if key in row}
    needed = set() if kind == "baseline" else {"chances"} if track == MASKED else {"replies"}
    if job.pair:  # no chances are kept of two agents
        needed = {"replies"} if any(entry["kind"] == "endpoint" for entry in job.pair) else set()
    if has != needed:
        raise ReplayError(f"it has {sorted(has) or 'nothing'} where {sorted(needed) or 'nothing'} is needed")
    if ("cost" in row) != (kind == "endpoint"):
        raise ReplayError("an episode has costs if and only if its agent is an endpoint")
    if row.get("gave_up") and "replies" not in needed:
        raise ReplayError("it was given up, and an agent that chooses cannot give a game up")
    if "replies" not in needed and row["history"] is None:
        raise ReplayError("it has no history")
    if match.task.startswith(TRACE) and row["history"] is not None and len(row["history"]) != 1:
        raise ReplayError(f"the history has {len(row['history'])} choices, and a trace one")


def _compare(row: Row, played: Row) -> str:
    """Returns in what a record differs from the episode as it was played again; "" if in nothing."""
    # As texts, in which 0.0 is not -0.0; a cost is the endpoint's word.
    for key in sorted({*row, *played} - {"cost"}):
        theirs, ours = row.get(key), played.get(key)
        if repr(theirs) == repr(ours) or (key == "error" and (theirs is None) == (ours is None)):
            continue
        if key == "history" and theirs is not None and ours is not None:
            return f"history: it differs from the game at move {find_first_difference(theirs, ours)}"
        return f"{key}: the file says {theirs!r:.120}, and played again it is {ours!r:.120}"
    return ""
