"""A board's tables in a terminal, from its results as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from gamespiel.report.tables import Grid
from gamespiel.report.text import make_harmless

NOTE = (
    "score: mean over the tasks that the agent entered, each with the same weight; ± is a 95% interval, "
    "clustered by deal. rating: Elo points from the scores against the anchors, whose ratings are fixed "
    "(random has 0), mean over the games, with a 95% interval from resampled deals; an agent with one deal "
    "of a game has none. Scores and ratings of agents that entered other tasks are not alike: see the paired "
    "differences."
)
"""Printed below the tables."""


def print_board(console: Console, data: Mapping[str, Any]) -> None:
    """Prints the tables of a board."""
    for kind, found in data["results"].items():
        if any(own["tasks_played"] for own in found["agents"].values()):
            title = f"{kind}, track {data['track']}, deals {data['deals']:.60}"
            console.print(_make_table(title, found))
    console.print(Text(NOTE))


def order_agents(found: Mapping[str, Any]) -> list[str]:
    """Returns the agents of a part of a board that played, the best rating first, else the best score."""
    agents = {name: own for name, own in found["agents"].items() if own["tasks_played"]}
    return sorted(
        agents,
        key=lambda name: (-(agents[name]["rating"] or {"points": 0.0})["points"], -agents[name]["score"]),
    )


def format_rating(rating: Mapping[str, Any] | None) -> tuple[str, str]:
    """Returns a rating and its interval; "-" for what is not there."""
    if rating is None:
        return "-", "-"
    low, high = rating["low"], rating["high"]
    return f"{rating['points']:+.0f}", "-" if low is None else f"{low:+.0f} … {high:+.0f}"


def count_cells(cells: Mapping[str, Mapping[str, Any]]) -> tuple[int, int, int, int]:
    """Returns the tasks that an agent enters, its least and greatest number of deals, and its episodes."""
    entered = [cell for cell in cells.values() if "refused" not in cell]
    deals = [cell["deals"] for cell in entered]
    return (
        len(entered),
        min(deals, default=0),
        max(deals, default=0),
        sum(cell["episodes"] for cell in entered),
    )


def _make_table(title: str, found: Mapping[str, Any]) -> Grid:
    table = Grid(
        "agent",
        ("score", "rating", "95%", "tasks", "deals\nper task", "episodes"),
        title,
        padding=1,
        least=20,
    )
    for name in order_agents(found):
        table.add_row(Text(make_harmless(name)), *describe_agent(found, name))
    return table


def describe_agent(found: Mapping[str, Any], name: str) -> Sequence[str]:
    """Returns the cells of an agent's row: score, rating, interval, tasks, deals per task, episodes."""
    own = found["agents"][name]
    rating, interval = format_rating(own["rating"])
    entered, least, most, episodes = count_cells(own["tasks"])
    deals = f"{least}" if least == most else f"{least} … {most}"
    half = (own["high"] - own["low"]) / 2
    tasks = f"{own['tasks_played']}/{entered} of {len(own['tasks'])}"
    return f"{own['score']:.3f} ± {half:.3f}", rating, interval, tasks, deals, f"{episodes:,}"
