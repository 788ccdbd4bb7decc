"""Success by game, opponent and stage, with intervals: the panels of ``gamespiel plot`` below the curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from gamespiel.agents.runs.loggers import Row
from gamespiel.overview.reading import Run
from task_gym.stats import Interval, wilson

PART = 5
"""The first and the last of so many parts of a run's steps are compared."""

MOST = 24
"""The most names of a panel; the others are those with the fewest episodes."""

Counts = dict[str, tuple[float, int]]
"""Successes and episodes by name."""


class Shares(NamedTuple):
    """Success by name.

    Attributes:
        title: What the names are.
        early: By name, the share in the first part of the steps; empty where a name has one time only.
        late: By name, the share in the last part.
    """

    title: str
    early: Mapping[str, Interval]
    late: Mapping[str, Interval]


def find_shares(runs: Sequence[Run]) -> Iterator[Shares]:
    """Yields the success of runs by game, by opponent and by stage, of those that have several."""
    rows = [row for run in runs for row in run.rows]
    steps = max((row["step"] for row in rows), default=0)
    length = max(1, steps // PART)
    early = [row for row in rows if row["step"] <= length]
    late = [row for row in rows if row["step"] > steps - length]
    for title, prefix in (("game", "rollout/game/"), ("opponent", "rollout/against/")):
        counted = [_count_successes(part, _split_by(prefix)) for part in (early, late)]
        if len(counted[0].keys() | counted[1].keys()) > 1:
            yield Shares(f"success by {title}", *map(_to_intervals, counted))
    stages = _count_successes(rows, _split_by_stage)
    if len(stages) > 1:
        yield Shares("success by stage, all of its steps", {}, _to_intervals(stages))


def draw_shares(axes: Any, shares: Shares, colour: str) -> None:
    """Draws a line per name: the share late in the run, filled, and early, hollow, with 95% intervals."""
    names = list(dict.fromkeys([*shares.late, *shares.early]))[:MOST]
    for place, name in enumerate(names):
        for part, offset, face in ((shares.early, -0.15, "white"), (shares.late, 0.15, colour)):
            if name not in part:
                continue
            mean, low, high = part[name]
            offset = offset if shares.early else 0.0
            axes.plot([low, high], [place + offset] * 2, color=colour, linewidth=1.2, alpha=0.6)
            axes.plot([mean], [place + offset], "o", color=colour, markerfacecolor=face, markersize=4.5)
    axes.set_yticks(range(len(names)), [f"{name:.40}" for name in names], fontsize=7 if len(names) > 8 else 9)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlim(-0.02, 1.02)
    fifths = ", first fifth of the steps (hollow) and last" if shares.early else ""
    axes.set_title(f"{shares.title}{fifths}", loc="left", fontsize=11)


def _split_by(prefix: str) -> Callable[[Row], Counts]:
    def split(row: Row) -> Counts:
        ends = {
            key.removeprefix(prefix).removesuffix("/episodes"): value
            for key, value in row.items()
            if key.startswith(prefix) and key.endswith("/episodes")
        }
        return {name: (row[f"{prefix}{name}/success"] * count, count) for name, count in ends.items()}

    return split


def _split_by_stage(row: Row) -> Counts:
    name, count = row.get("curriculum/name"), row.get("rollout/episodes")
    if not isinstance(name, str) or not count:
        return {}
    return {name: (row["rollout/success"] * count, count)}


def _count_successes(rows: Sequence[Row], split: Callable[[Row], Counts]) -> Counts:
    """Returns the sums over rows, the names with most episodes first, or as they came if there are few."""
    found: Counts = {}
    for row in rows:
        for name, (successes, episodes) in split(row).items():
            before = found.get(name, (0.0, 0))
            found[name] = (before[0] + successes, before[1] + int(episodes))
    if len(found) <= MOST:
        return found
    return dict(sorted(found.items(), key=lambda item: -item[1][1]))


def _to_intervals(counts: Counts) -> dict[str, Interval]:
    # A mean of booleans times their number is a whole number, but for the last bits of a float.
    return {name: wilson(min(round(won, 6), count), count) for name, (won, count) in counts.items() if count}
