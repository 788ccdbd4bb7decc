"""Scores of the same episodes before and after training, game by game."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from gamespiel.report.grid import Grid
from task_gym.stats import Interval, mean_interval

PAIRED_NOTE = (
    "change: mean of the differences, episode by episode, of the same tasks, seeds and seats, with its 95% "
    "interval. None of these episodes was trained on."
)
"""Printed below ``render_pairs``."""

Scores = Sequence[tuple[str, float | None]]
"""Game and score of each episode; the score of a fault is None."""


class Paired(NamedTuple):
    """Scores of the same episodes before and after.

    Attributes:
        episodes: Number of episodes that were no fault either time.
        before: Their mean score before.
        after: Their mean score after.
        change: Mean of their differences with its 95% interval.
    """

    episodes: int
    before: float
    after: float
    change: Interval


def pair_scores(before: Scores, after: Scores) -> dict[str, Paired]:
    """Returns the pairs by game, and of all games as "all".

    It is empty for fewer than two games, for which the summary says enough, and if the episodes differ.
    """
    games = sorted({game for game, _ in before})
    if len(games) < 2 or [game for game, _ in before] != [game for game, _ in after]:
        return {}
    pairs = [
        (game, old, new)
        for (game, old), (_, new) in zip(before, after, strict=True)
        if old is not None and new is not None
    ]
    groups = {game: [(old, new) for own, old, new in pairs if own == game] for game in games}
    groups["all"] = [(old, new) for _, old, new in pairs]
    return {
        name: Paired(
            len(own),
            sum(old for old, _ in own) / len(own),
            sum(new for _, new in own) / len(own),
            mean_interval([new - old for old, new in own], (-1.0, 1.0)),
        )
        for name, own in groups.items()
        if own
    }


def render_pairs(rows: dict[str, Paired]) -> Grid:
    """Returns a table with a row per game, and one of all."""
    table = Grid("score", ("episodes", "before", "after", "change", "95% interval"), padding=1)
    for name, row in rows.items():
        change, low, high = row.change
        table.add_row(
            Text(name), f"{row.episodes:,}", f"{row.before:.3f}", f"{row.after:.3f}",
            Text(f"{change:+.3f}", style="bold"), f"{low:+.3f} … {high:+.3f}",
        )  # fmt: skip
    return table
