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
    "cost: tokens of prompts and of replies, mean over the episodes in which the endpoint counted them, and "
    "seconds until its replies came, further tries included."
)
"""Printed if there are costs."""

DIFFERENCES_NOTE = (
    "paired differences: mean score of the first less that of the second on the same deals, over the tasks "
    "that both entered, each with the same weight. Their intervals are right together with 95%, however "
    "often the board is read. left out: deals in which one of the two had a fault."
)
"""Printed if there are differences."""

MOST_DIFFERENCES = 30
"""The most pairs whose differences a terminal shows if they are not clear."""


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
        for head, rows, title in list_meeting_tables(part, labels):
            _print_rows(console, head, rows, title)
        _print_differences(console, part["differences"], labels)
    console.print(Text(NOTE))
    if any(part["differences"] for part in data["results"].values()):
        console.print(Text(DIFFERENCES_NOTE))
    if any(has_any(part, "cost") for part in data["results"].values()):
        console.print(Text(COST_NOTE))


Rows = list[tuple[str, ...]]
"""The cells of a table's rows."""


def _print_rows(console: Console, head: Sequence[str], rows: Rows, title: str) -> None:
    table = Grid(head[0], head[1:], title, padding=1, least=16)
    for first, *cells in rows:
        table.add_row(Text(first), *cells)
    console.print(table)


def _print_differences(
    console: Console, differences: Sequence[Mapping[str, Any]], labels: Mapping[str, str]
) -> None:
    """Prints paired differences; of very many only those whose interval excludes 0."""
    shown = differences
    if len(differences) > MOST_DIFFERENCES:
        shown = [row for row in differences if row["low"] > 0 or row["high"] < 0]
    if shown:
        _print_rows(console, DIFFERENCES_HEAD, list_differences(shown, labels), "paired differences")
    if others := len(differences) - len(shown):
        console.print(Text(f"paired differences that are not clear: {others:,}; --html shows them"))


DIFFERENCES_HEAD = ("pair", "difference", "interval", "p", "tasks", "deals", "left\nout")
"""The heads of the columns of paired differences."""


def list_differences(differences: Sequence[Mapping[str, Any]], labels: Mapping[str, str]) -> Rows:
    """Returns the cells of paired differences, under ``DIFFERENCES_HEAD``."""
    return [
        (
            f"{labels[row['first']]}\n- {labels[row['second']]}",
            f"{row['difference']:+.3f}",
            f"{row['low']:+.3f} … {row['high']:+.3f}",
            "< 0.001" if row["p_value"] < 0.001 else f"{row['p_value']:.3f}",
            str(row["tasks"]),
            str(row["deals"]),
            str(row["faults"]),
        )
        for row in differences
    ]


def list_meeting_tables(
    part: Mapping[str, Any], labels: Mapping[str, str]
) -> Iterator[tuple[tuple[str, ...], Rows, str]]:
    """Yields heads, rows and titles of the tables of agents that met each other, if any did."""
    meetings = part.get("meetings", {"pairs": {}, "ratings": {}})
    ratings = sorted(meetings["ratings"].items(), key=lambda item: -item[1]["points"])
    rows: Rows = []
    for name, rating in ratings:
        anchored = part["agents"][name].get("rating")
        rows.append((labels[name], *format_rating(rating), format_rating(anchored)[0]))
    if rows:
        yield ("agent", "rating", "95%", "against\nanchors"), rows, "ratings from meetings"
    pairs: Rows = []
    for name, pair in meetings["pairs"].items():
        if not pair["deals"] and not pair["faults"]:  # not played yet
            continue
        left = f"\n{pair['missing']} missing" if pair["missing"] else ""
        faults = f"\n{pair['faults']} faults" if pair["faults"] else ""
        score, interval = "-", "-"
        if "score" in pair:
            score, interval = f"{pair['score']:.3f}", f"{pair['low']:.2f} … {pair['high']:.2f}"
        pairs.append((labels[name], score, interval, f"{pair['tasks']}", f"{pair['deals']}{left}{faults}"))
    if pairs:
        yield ("meeting", "score of\nthe first", "95%", "games", "deals"), pairs, "meetings"


def list_labels(data: Mapping[str, Any]) -> dict[str, str]:
    """Returns what tables call each agent: its name and, if it is another, what it is; of meetings both."""
    labels: dict[str, str] = {}
    for entry in data["agents"]:
        name, agent = entry["name"], entry["agent"]
        if entry["kind"] == "meeting":  # comes after both
            labels[name] = f"{labels[agent]}\nvs {labels[entry['rival']]}"
        else:
            kind = " (checkpoint)" if entry["kind"] == "checkpoint" else ""  # else its prefix says the kind
            labels[name] = (name if agent == name else f"{name} = {agent}") + kind
    return labels


def order_agents(part: Mapping[str, Any]) -> list[str]:
    """Returns the agents of a part of a board that played, the best rating first, else the best score."""
    agents = {name: summary for name, summary in part["agents"].items() if summary["tasks_played"]}
    return sorted(
        agents,
        key=lambda name: (-(agents[name]["rating"] or {"points": 0.0})["points"], -agents[name]["score"]),
    )


def format_rating(rating: Mapping[str, Any] | None) -> tuple[str, str]:
    """Returns a rating and its interval, which can have one end; "-" for what is not there."""
    if rating is None:
        return "-", "-"
    low, high = (None if end is None else f"{end:+.0f}" for end in (rating["low"], rating["high"]))
    if low is None:
        interval = "-" if high is None else f"to {high}"
    else:
        interval = f"from {low}" if high is None else f"{low} … {high}"
    return f"{rating['points']:+.0f}", interval


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
    words = [f"{' + '.join(map(_shorten, tokens)) or '?'} tokens"]
    if cost["counted"] < cost["episodes"]:
        words.append(f"counted in {cost['counted']:,} of {cost['episodes']:,}")
    words.append(f"{_shorten(cost['seconds'])} s")
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
