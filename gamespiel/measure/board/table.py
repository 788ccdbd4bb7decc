"""A board's tables in a terminal, from its results as plain data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from gamespiel.measure.board.file import TOKENS
from gamespiel.measure.board.prices import Prices
from gamespiel.report.tables import Grid

NOTE = (
    "score: mean over the tasks that the agent entered, each with the same weight, with a 95% interval that "
    "is right however often the board is read; a deal is one value. missing: deals of the plan that do not "
    "count, since they or earlier ones were not played, or taken away. rating: Elo points from the scores "
    "against the anchors, whose ratings are fixed (random has 0), mean over the games, with a 95% interval "
    "from resampled deals; an agent with one deal of a game has none. regret: what a move in leduc_poker "
    "against random lost to the best one there, in scores, and the moves. Scores and ratings of agents "
    "that entered other tasks are not alike: see the paired differences."
)
"""Printed below the tables."""

COST_NOTE = (
    "cost: tokens of prompts and of replies as the endpoint counted them, and seconds until its replies "
    "came, further tries included."
)
"""Printed if there are costs."""


def print_board(console: Console, data: Mapping[str, Any], prices: Prices) -> None:
    """Prints the tables of a board."""
    labels = list_labels(data)
    for kind, part in data["results"].items():
        if any(summary["tasks_played"] for summary in part["agents"].values()):
            table = Grid(
                "agent",
                list_columns(part),
                f"{kind}, track {data['track']}, deals {data['deals']:.60}",
                padding=1,
                least=20,
            )
            for name in order_agents(part):
                table.add_row(Text(labels[name]), *describe_agent(part, name, prices))
            console.print(table)
        for head, rows, title in list_meeting_tables(part):
            table = Grid(head[0], head[1:], title, padding=1, least=20)
            for first, *cells in rows:
                table.add_row(Text(first), *cells)
            console.print(table)
    console.print(Text(NOTE))
    if any(has_any(part, "cost") for part in data["results"].values()):
        console.print(Text(COST_NOTE))


Rows = list[tuple[str, ...]]
"""The cells of a table's rows."""


def list_meeting_tables(part: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Rows, str]]:
    """Yields heads, rows and titles of the tables of agents that met each other, if any did."""
    meetings = part.get("meetings", {"pairs": {}, "ratings": {}})
    if not any("score" in pair for pair in meetings["pairs"].values()):
        return
    ratings = sorted(meetings["ratings"].items(), key=lambda item: -item[1]["points"])
    rows: Rows = []
    for name, rating in ratings:
        anchored = part["agents"][name].get("rating")
        rows.append((name, *format_rating(rating), format_rating(anchored)[0]))
    yield ("agent", "rating", "95%", "against\nanchors"), rows, "ratings from meetings"
    pairs: Rows = []
    for name, pair in meetings["pairs"].items():
        if "score" in pair:
            left = f"\n{pair['missing']} missing" if pair["missing"] else ""
            faults = f"\n{pair['faults']} faults" if pair["faults"] else ""
            interval = f"{pair['low']:.2f} … {pair['high']:.2f}"
            pairs.append(
                (name, f"{pair['score']:.3f}", interval, f"{pair['tasks']}", f"{pair['deals']}{left}{faults}")
            )
    yield ("meeting", "score of\nthe first", "95%", "games", "deals"), pairs, "meetings"


def list_labels(data: Mapping[str, Any]) -> dict[str, str]:
    """Returns what tables call each agent: its name and, if it is another, what it is."""
    pairs = [(entry["name"], entry["agent"]) for entry in data["agents"] if entry["kind"] != "meeting"]
    return {name: name if agent == name else f"{name} = {agent}" for name, agent in pairs}


def order_agents(part: Mapping[str, Any]) -> list[str]:
    """Returns the agents of a part of a board that played, the best rating first, else the best score."""
    agents = {name: summary for name, summary in part["agents"].items() if summary["tasks_played"]}
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


def list_columns(part: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the heads of a part's columns; those of regrets and costs if an agent has any."""
    regrets = ("regret\nper move",) if has_any(part, "regret") else ()
    costs = ("cost per\nepisode",) if has_any(part, "cost") else ()
    return ("score", "rating", "95%", *regrets, "tasks", "deals\nper task", "episodes", *costs)


def has_any(part: Mapping[str, Any], key: str) -> bool:
    """Returns whether an agent of a part has a "regret", or a "cost" as models behind endpoints have."""
    return any(key in summary for summary in part["agents"].values())


def describe_agent(part: Mapping[str, Any], name: str, prices: Prices) -> Sequence[str]:
    """Returns the cells of an agent's row, under the heads of ``list_columns``."""
    summary = part["agents"][name]
    rating, interval = format_rating(summary["rating"])
    entered = [cell for cell in summary["tasks"].values() if "refused" not in cell]
    deals = sorted({cell["deals"] for cell in entered})
    faults = sum(cell["faults"] for cell in entered)
    costs = (_describe_cost(summary.get("cost"), prices.get(name)),) if has_any(part, "cost") else ()
    regrets = (_describe_regret(summary.get("regret")),) if has_any(part, "regret") else ()
    return (
        f"{summary['score']:.3f}\n{summary['low']:.2f} … {summary['high']:.2f}",
        rating,
        interval,
        *regrets,
        f"{summary['tasks_played']}/{len(entered)} of {len(summary['tasks'])}",
        (f"{deals[0]}" if len(deals) == 1 else f"{deals[0]} … {deals[-1]}")
        + (f"\n{summary['missing']} missing" if summary["missing"] else ""),
        f"{sum(cell['episodes'] for cell in entered):,}" + (f"\n{faults} faults" if faults else ""),
        *costs,
    )


def _describe_regret(regret: Mapping[str, Any] | None) -> str:
    return "-" if regret is None else f"{regret['mean']:.3f}\n{regret['moves']:,} moves"


def _describe_cost(cost: Mapping[str, float] | None, price: tuple[float, float] | None) -> str:
    """Returns tokens of prompts and replies, seconds and dollars per episode; "-" for what has none."""
    if cost is None:
        return "-"
    tokens = [cost[name] for name in TOKENS if name in cost]
    words = [f"{' + '.join(map(_shorten, tokens)) or '?'} tokens", f"{_shorten(cost['seconds'])} s"]
    if price is not None:
        dollars = sum(count * each for count, each in zip(tokens, price, strict=False)) / 1e6
        words.append(f"{_shorten(dollars) if tokens else '?'} dollars")
    return "\n".join(words)


def _shorten(number: float) -> str:
    """Returns a number with three digits: an endpoint may say any, and wide columns drive out others."""
    units = ["", "k", "M", "G", "T", "P", "E"]
    while number >= 999.5 and len(units) > 1:
        number /= 1000
        del units[0]
    return f"{number:.3g}{units[0]}"
