"""``gamespiel verify``: plays every game of a board's file again, and says what is not as it must be."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice
from pathlib import Path
from typing import Any

from rich.console import Console

from gamespiel.errors import ConfigError, InvalidValueError
from gamespiel.measure.board.agents import explain_entry
from gamespiel.measure.board.benchmark import MEETING_GAMES, parse_deals
from gamespiel.measure.board.file import (
    Board,
    digest_episodes,
    keep_units,
    parse_board,
    read_bytes,
    render,
    seal,
)
from gamespiel.measure.board.jobs import Job, run_jobs
from gamespiel.measure.board.meetings import explain_no_meeting
from gamespiel.measure.board.replays import find_first_difference
from gamespiel.measure.board.results import MOST_FAULTS, summarize
from gamespiel.measure.board.run import list_versions
from gamespiel.measure.journal import Row
from gamespiel.measure.play import Match
from gamespiel.report.console import make_console
from gamespiel.tracks import MASKED
from task_gym.errors import quote

TOLERANCE = 1e-6
"""How far a result may be off: other versions of NumPy and SciPy round in another way."""

MOST_SHOWN = 50
"""The most findings that are printed, and the most of one agent."""

EVERY = 30.0
"""Seconds between two lines of progress."""


class VerificationError(ConfigError):
    """A board that is not what it says."""


@dataclass
class Report:
    """The findings of a verification.

    Attributes:
        findings: The errors, each with its place.
        notes: Things that could not be checked, or should be known.
        episodes: Episodes that were played again.
        moves: Moves of these.
        board: The board, as far as its episodes are those of its deals.
    """

    findings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    episodes: int = 0
    moves: int = 0
    board: Board | None = None


def verify_board(
    path: Path,
    *,
    quick: bool = False,
    processes: int = 1,
    models: Sequence[str] = (),
    share: float = 0.1,
    seed: int | None = None,
    console: Console | None = None,
) -> Report:
    """Plays everything of a board again; prints what is wrong.

    Args:
        path: The file.
        quick: Whether moves of searches only have to be legal, and are not searched again.
        processes: Processes that play.
        models: Models that play a share of their deals again; see ``read_models``.
        share: See ``read_models``.
        seed: See ``replay_models``.
        console: The console to print on.

    Raises:
        BoardError: it is no board at all.
        VerificationError: something is wrong; it was printed.
    """
    console = console or make_console()
    if not 1 <= processes <= 256:
        raise InvalidValueError(f"--processes must be 1 … 256, not {processes}")
    if seed is not None and seed < 0:
        raise InvalidValueError(f"--seed must be at least 0, not {seed}")
    agents = []
    if models:  # errors now, and not after everything was played again
        from gamespiel.measure.board.model_replay import read_models, replay_models  # loads PyTorch

        agents = read_models(models, share, parse_board(read_bytes(path), repr(str(path))))
    report = inspect_board(path, quick=quick, processes=processes, console=console)
    if agents and report.board is not None and not report.findings:
        report.findings += replay_models(report.board, agents, share, seed, console)
    elif agents:
        report.notes.append("no model played its deals again, because of what was found before")
    for said, lines in (("WRONG", report.findings), ("note", report.notes)):
        for line in lines[:MOST_SHOWN]:
            console.print(f"{said}: {line}", soft_wrap=True, markup=False, highlight=False)
        if len(lines) > MOST_SHOWN:
            console.print(f"and {len(lines) - MOST_SHOWN:,} more", markup=False)
    console.print(f"{report.episodes:,} episodes with {report.moves:,} moves were played again", markup=False)
    if report.findings:
        first = report.findings[0]
        raise VerificationError(
            f"{str(path)!r} is not what it says: {len(report.findings):,} findings; the first: {first}"
        )
    console.print(f"{path}: everything that can be checked is as it says", soft_wrap=True, markup=False)
    return report


def inspect_board(
    path: Path, *, quick: bool = False, processes: int = 1, console: Console | None = None
) -> Report:
    """Returns what ``verify_board`` prints.

    Raises:
        BoardError: it is no board at all.
    """
    report = Report()
    content = read_bytes(path)
    data = parse_board(content, repr(str(path)))
    _check_bytes(data, content, report)
    deals = parse_deals(data["deals"])
    board = report.board = Board(deals, data["track"], data["rounds"])
    jobs: list[Job] = []
    for number, entry in enumerate(data["agents"]):
        jobs += _check_agent(board, entry, f"agents.{number} {quote(entry['name'])}", report)
    _note_meetings(board, report)
    _note_versions(data["versions"], report)
    replay_jobs(jobs, board, quick, processes, report, console)
    if not any("address" in line for line in report.findings):
        report.findings += islice(_diff(data["results"], summarize(board), "results"), MOST_SHOWN)
    return report


def _check_bytes(data: Mapping[str, Any], content: bytes, report: Report) -> None:
    canonical_bytes = render(data)
    if canonical_bytes != content:
        parting = find_first_difference(canonical_bytes, content)
        at = min(len(canonical_bytes), len(content)) if parting is None else parting
        around = content[max(0, at - 30) : at + 30]
        report.findings.append(f"byte {at:,}: boards are not written so: {around!r}")
    if (digest := seal(data)) != data["sha256"]:
        report.findings.append(
            f"sha256: the file says {data['sha256']:.16}…, and its content has {digest:.16}…: it was changed "
            "after it was written"
        )


def _check_agent(board: Board, entry: Mapping[str, Any], where: str, report: Report) -> list[Job]:
    """Checks an agent's entries and the addresses of its episodes; puts the episodes into the board.

    Returns:
        The episodes to play again.
    """
    name, rows = entry["name"], entry["episodes"]
    about = {key: value for key, value in entry.items() if key not in ("episodes", "episodes_sha256")}
    if name in board.entries:
        report.findings.append(f"{where}: another agent has this name")
        return []
    if problem := explain_entry(about, board.track):
        report.findings.append(f"{where}: {problem}")
        return []
    if (digest := digest_episodes(name, rows)) != entry["episodes_sha256"]:
        report.findings.append(
            f"{where}: episodes_sha256 is {entry['episodes_sha256']:.16}…, and name and episodes have "
            f"{digest:.16}…: episodes were changed, or the name"
        )
    names = (about["agent"], about["rival"]) if about["kind"] == "meeting" else ()
    if wrong := [rival for rival in names if rival not in board.entries]:
        report.findings.append(f"{where}: the entries of {quote(wrong[0])} are wrong")
        return []
    board.entries[name] = about
    pair = tuple(board.entries[rival] for rival in names)
    problems: list[str] = []
    jobs = [
        Job(f"{where}, episode {place} ({match})", match, row, about, pair)
        for place, match, row in _pair_rows(board, name, rows, problems)
    ]
    report.findings += [f"{where}, {problem}" for problem in problems]
    if not problems:
        keep_units(board, name, rows)
    _note_agent(board, about, where, report)
    return jobs


def _pair_rows(
    board: Board, name: str, rows: Sequence[Row], problems: list[str]
) -> Iterator[tuple[int, Match, Row]]:
    """Yields each record with its episode; adds what is wrong with their addresses to ``problems``.

    The order of the episodes is fixed, so that one that is missing, twice there, or has another seed is seen.
    """
    units = board.list_units(name)
    expected = (pair for unit in units for pair in enumerate(board.list_matches(unit)))
    seen = Counter((row["task"], row["deal"], row["seat"], row["opponent"]) for row in rows)
    for key, count in seen.items():
        if count > 1:
            problems.append(
                f"address: {key[0]}, deal {key[1]}, seat {key[2]} against {key[3]} is there {count} times"
            )
    if problems:
        return
    for place, row in enumerate(rows):
        _, match = next(expected, (0, None))
        if match is None:
            problems.append(
                f"episode {place}: address: no more episodes were planned ({board.rounds} rounds)"
            )
            return
        wrong = [
            f"{key} is {row[key]!r}, and the deal has {getattr(match, key)!r}"
            for key in ("task", "deal", "task_id", "seed", "seat", "opponent")
            if row[key] != getattr(match, key)
        ]
        if any(line.startswith(("task is", "deal is", "seat is", "opponent is")) for line in wrong):
            problems.append(
                f"episode {place}: address: missing is {match}; here is {row['task']}, deal {row['deal']}"
            )
            return
        if wrong:
            problems.append(f"episode {place} ({match}): address: {'; '.join(wrong)}")
        yield place, match, row
    number, following = next(expected, (0, None))
    if number:
        problems.append(f"episode {len(rows)}: address: missing is {following}, a part of a deal")


def _note_agent(board: Board, about: Mapping[str, Any], where: str, report: Report) -> None:
    planned = board.rounds * len(board.list_tasks(about["name"]))
    counted = len(board.list_counted(about["name"]))
    if counted < planned:
        report.notes.append(
            f"{where}: {counted:,} of {planned:,} deals are there, the first ones: the others were not "
            "played, or were taken away from the end"
        )
    if about["kind"] not in ("baseline", "meeting"):
        what = "replies" if board.track != MASKED else "choices"
        report.notes.append(
            f"{where}: that these {what} are those of {about['agent']!r:.80} is what the author says; "
            "that they were legal, what followed from them and the scores were checked"
        )


def _note_meetings(board: Board, report: Report) -> None:
    """Notes how many of the agents that can meet did not: a file does not say who was to meet whom."""
    enters = [
        {task for task in board.list_tasks(name) if task in MEETING_GAMES}
        for name, entry in board.agents.items()
        if not explain_no_meeting(entry, board.track)
    ]
    pairs = sum(bool(ours & theirs) for ours, theirs in combinations(enters, 2))
    if (absent := pairs - len(board.meetings)) > 0:
        report.notes.append(
            f"{absent:,} of {pairs:,} pairs of agents that can meet have no meeting: they did not meet, or "
            "it was taken away"
        )


def _note_versions(written: Mapping[str, str], report: Report) -> None:
    here = list_versions()
    for name in ("open_spiel", "python", "numpy", "anchors"):
        theirs, ours = written.get(name, "none"), here.get(name, "none")
        if name == "python":
            theirs, ours = (text.rpartition(".")[0] for text in (theirs, ours))
        if theirs == ours:
            continue
        if name == "anchors":
            report.notes.append(
                f"its ratings are of the anchors {theirs:.40}, and {ours} is here: they differ for that alone"
            )
        else:
            report.notes.append(
                f"the board was played with {name} {theirs:.40}, and {ours} is here: moves of searches "
                "and programs can differ for that reason alone"
            )


def replay_jobs(
    jobs: Sequence[Job], board: Board, quick: bool, processes: int, report: Report, console: Console | None
) -> None:
    """Plays episodes again, and adds to a report those that differ."""
    spoke = time.monotonic()
    problems = dict[int, str]()
    answers = run_jobs(jobs, board.deals, board.track, quick=quick, processes=processes)
    for number, (place, problem) in enumerate(answers, 1):
        report.episodes += 1
        report.moves += len(jobs[place].row["history"] or jobs[place].row.get("replies", []))
        if problem:
            problems[place] = f"{jobs[place].where}: {problem}"
        if console is not None and time.monotonic() - spoke > EVERY:
            spoke = time.monotonic()
            console.print(f"  {number:,} of {len(jobs):,} episodes", markup=False)
    report.findings += [problem for _, problem in sorted(problems.items())]
    faults = Counter((job.entry["name"], bool(job.pair)) for job in jobs if job.row["result"] == "fault")
    for (name, meeting), count in faults.items():
        loser = " of the agent that was to move" if meeting else ""
        report.notes.append(
            f"{quote(name)}: {count:,} episodes were faults; their deals are left out, or if these are more "
            f"than one and more than {MOST_FAULTS:.0%} of all, its faults are losses{loser}"
        )
    if quick and any(job.searches for job in jobs):
        report.notes.append(
            "--quick: moves of searches only had to be legal; without it they are searched again"
        )


def _diff(written: Any, truth: Any, where: str) -> Iterator[str]:
    """Yields the places in which results differ."""
    if isinstance(truth, dict) and isinstance(written, dict):
        for key in sorted({*written, *truth}):
            if key not in written or key not in truth:
                state = "missing" if key not in written else "there, and no result"
                yield f"{where}.{key:.80}: it is {state}"
            else:
                yield from _diff(written[key], truth[key], f"{where}.{key}")
    elif isinstance(truth, list) and isinstance(written, list) and len(truth) == len(written):
        for number, (theirs, ours) in enumerate(zip(written, truth, strict=True)):
            yield from _diff(theirs, ours, f"{where}.{number}")
    elif not _is_same(written, truth):
        yield f"{where}: the file says {written!r:.80}, and from the episodes it is {truth!r:.80}"


def _is_same(written: Any, truth: Any) -> bool:
    if isinstance(written, float) and isinstance(truth, float):
        return bool(abs(written - truth) <= TOLERANCE * max(1.0, abs(truth)))
    return type(written) is type(truth) and bool(written == truth)
