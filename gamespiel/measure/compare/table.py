"""The tables of a comparison, from its results as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from gamespiel.report.tables import Grid

NOTE = (
    "difference: mean of the paired differences, deal by deal; a deal is one seed of one task, from all of "
    "its seats, and counts once. exact: nothing was sampled. The intervals of differences are right together "
    "with 95%, that of each score by itself, and p is adjusted by Holm for all rows. saved: deals that plain "
    "scores would need, over those that the estimates without known luck (AIVAT) need. needed: deals of each "
    "game with which a difference of {detect:g} would be found with 80%."
)
"""Printed below the differences."""

ANYTIME = (
    "Play was looked at, and could stop as soon as it was clear: intervals and p are right whenever one "
    "stops, and wider for it."
)


def print_comparison(console: Console, comparison: Mapping[str, Any], where: str) -> None:
    """Prints the tables of a comparison's results."""
    console.print(_make_scores(f"scores on {where}", comparison["agents"]))
    console.print(_make_differences(comparison["differences"]))
    console.print(Text(NOTE.format(detect=comparison["detect"])))
    if comparison["anytime"]:
        console.print(Text(ANYTIME))
    if comparison["stopped_early"]:
        console.print(Text(f"It was clear after {comparison['rounds']:,} rounds."))


def _make_scores(title: str, agents: Mapping[str, Mapping[str, Any]]) -> Grid:
    table = Grid("", ("score", "deals", "share of best\nresponse", "exploit-\nability"), title)
    for name, games in agents.items():
        table.add_row(Text(name, style="bold"))
        for game, cell in games.items():
            exact = cell.get("exact")
            if exact is not None:
                table.add_row(
                    f"  {game}",
                    f"{exact['score']:.4f}",
                    "exact",
                    _percent(exact["share"]),
                    f"{exact['exploitability']:.4f}",
                )
                continue
            score = "-"
            if "score" in cell:
                score = f"{cell['score']:.3f}\n{cell['low']:.3f} … {cell['high']:.3f}"
            faults = f"\n{cell['faults']:,} faults" if cell["faults"] else ""
            table.add_row(f"  {game}", score, f"{cell['deals']:,}{faults}", "", "")
    return table


def _percent(share: float) -> str:
    return f"{share:.1%}" if math.isfinite(share) else "-"


def _make_differences(rows: Sequence[Mapping[str, Any]]) -> Grid:
    columns = ("difference", "interval", "p", "deals", "saved", "needed")
    table = Grid("", columns, "paired differences")
    pair = None
    for row in rows:
        if pair != (row["first"], row["second"]):
            pair = row["first"], row["second"]
            table.add_row(Text(f"{pair[0]} - {pair[1]}", style="bold"))
        if row["exact"]:
            table.add_row(f"  {row['game']}", f"{row['difference']:+.4f}", "exact", "", "", "", "")
            continue
        clear = row["low"] > 0 or row["high"] < 0
        needed = "-" if row["deals_needed"] is None else f"{row['deals_needed']:,}"
        saved = "" if row["factor_saved"] is None else f"{row['factor_saved']:.1f}x"
        faults = f"\n{row['faults']:,} left out" if row["faults"] else ""
        table.add_row(
            f"  {row['game']}",
            Text(f"{row['difference']:+.3f}", style="bold" if clear else ""),
            f"{row['low']:+.3f} … {row['high']:+.3f}",
            _format_p(row["p_value"]),
            f"{row['deals']:,}{faults}",
            saved,
            needed,
        )
    return table


def _format_p(p_value: float) -> str:
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"
