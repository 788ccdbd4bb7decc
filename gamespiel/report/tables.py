"""The tables of an evaluation: of sampled games, of traces, and of exact values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from game_gym.exact import ExactResult
from gamespiel.agents.evaluation import Measured
from gamespiel.agents.stats import Interval
from gamespiel.exact import ExactComparison

SAMPLED_NOTE = (
    "score, success, return: mean and 95% interval (of the success rate, Wilson's). illegal moves: share of "
    "moves that the game refused; behind a mask there are none. legal mass: probability that the model gives "
    "to the legal answers when nothing masks it (- if no model plays)."
)
"""Printed below ``sampled_table``."""


def _table(title: str, columns: Sequence[str]) -> Table:
    """Returns a table for 60 columns or more: only its first column may wrap, and none is cut."""
    table = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, padding=0)
    table.add_column("", overflow="fold")
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def sampled_table(title: str, rows: Mapping[str, Measured]) -> Table:
    """Returns a table with a row per group of episodes; intervals are below the means."""
    columns = ("score", "success", "return", "illegal\nmoves", "legal\nmass", "turns")
    table = _table(title, columns)
    for name, m in rows.items():
        table.add_row(
            "\n".join([name, f"{m.episodes:,} games", *([f"{m.faults:,} faults"] if m.faults else [])]),
            _plus_minus(m.score, 3),
            f"{m.success.mean:.1%}\n{100 * m.success.low:.1f}–{100 * m.success.high:.1f}",
            "-" if m.returns is None else _plus_minus(m.returns, 2),
            f"{m.illegal_rate:.1%}",
            "-" if m.legal_mass is None else f"{m.legal_mass:.3f}",
            f"{m.length:.2f}",
        )
    return table


def scored_table(title: str, rows: Mapping[str, Measured]) -> Table:
    """Returns a table with a row per group of traces, with all scores and their intervals."""
    names = list(rows["all"].by_scoring)
    table = _table(f"{title}, percent and 95% Wilson", ("traces", *names))
    for name, m in rows.items():
        scores = [m.by_scoring[scoring] for scoring in names]
        shown = [f"{100 * s.mean:.1f}\n{100 * s.low:.1f}–{100 * s.high:.1f}" for s in scores]
        table.add_row(name, str(m.episodes), *shown)
    return table


def exact_table(comparison: ExactComparison) -> Table:
    """Returns a table of values from each seat, the best response's, shares and exploitability."""
    shown = comparison.policy
    title = (
        f"{shown.game} against {shown.opponent}, exact over {shown.information_states:,} information states"
    )
    table = _table(title, ("seat 0", "seat 1", "share of best\nresponse", "exploitability"))
    named: list[tuple[str, ExactResult | None]] = [
        ("untrained", comparison.untrained),
        ("policy", comparison.policy),
        ("greedy", comparison.greedy),
    ]
    for name, result in named:
        if result is not None:
            values = [f"{value:+.4f}" for value in result.values]
            table.add_row(name, *values, f"{result.share:.1%}", f"{result.exploitability:.4f}")
    table.add_row("best response", *[f"{value:+.4f}" for value in shown.best], "100.0%", "")
    return table


def _plus_minus(interval: Interval, digits: int) -> str:
    """Returns the mean and, on a second line if it is finite, half the interval's width."""
    half = (interval.high - interval.low) / 2
    mean = f"{interval.mean:.{digits}f}"
    return f"{mean}\n± {half:.{digits}f}" if math.isfinite(half) else mean
