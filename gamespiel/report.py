"""Results as tables for people and as plain data for programs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from game_gym.exact import ExactResult
from gamespiel.agents.evaluation import Measured
from gamespiel.agents.loggers import to_json
from gamespiel.agents.stats import Interval
from gamespiel.exact import ExactComparison

SAMPLED_NOTE = (
    "score, success, return: mean and 95% interval (of the success rate, Wilson's). illegal moves: share of "
    "moves that the game refused; behind a mask there are none. legal mass: probability that the model gives "
    "to the legal answers when nothing masks it (- if no model was sampled)."
)
"""Printed below `sampled_table`."""

SUMMARY_LABELS = {"illegal rate": "illegal moves played", "legal mass": "legal mass without mask"}
"""How the table at the end of a run calls the measures whose keys do not explain themselves."""

SUMMARY_NOTE = (
    "illegal moves played: share of moves that the game refused; behind a mask there are none. legal mass "
    "without mask: probability that the model gives to the legal answers when nothing masks it."
)
"""Printed below the table at the end of a run."""


def _table(title: str, columns: Sequence[str]) -> Table:
    """A table for a terminal of 60 columns or more: only the first column may be wrapped, and none is cut."""
    table = Table(
        title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0)
    )
    table.add_column("", overflow="fold")
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def sampled_table(title: str, rows: Mapping[str, Measured]) -> Table:
    """A row per game if there are several, one per seat, and one for all; intervals are below the means."""
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
    """A row per group of traces, with all the scores and their intervals."""
    names = list(rows["all"].by_scoring)
    table = _table(f"{title}, percent and 95% Wilson", ("traces", *names))
    for name, m in rows.items():
        scores = [m.by_scoring[scoring] for scoring in names]
        shown = [f"{100 * s.mean:.1f} ({100 * s.low:.0f}–{100 * s.high:.0f})" for s in scores]
        table.add_row(name, str(m.episodes), *shown)
    return table


def exact_table(comparison: ExactComparison) -> Table:
    """Values from each seat, the best response's, the share reached and the exploitability."""
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


def summary_rows(
    sampled: Mapping[str, Measured], comparison: ExactComparison | None
) -> dict[str, float | str]:
    """What the table at the end of a run compares."""
    rows: dict[str, float | str] = {}
    if comparison is not None:
        rows["share of best response"] = comparison.policy.share
        rows["share, greedy"] = comparison.greedy.share
        for seat, value in enumerate(comparison.policy.values):
            rows[f"exact return, seat {seat}"] = value
    everyone = sampled.get("all")
    if everyone is not None:
        rows["score"] = everyone.score.mean
        rows["success rate"] = everyone.success.mean
        if everyone.returns is not None:
            rows["return"] = everyone.returns.mean
        rows["illegal rate"] = everyone.illegal_rate
        if everyone.legal_mass is not None:
            rows["legal mass"] = everyone.legal_mass
    return rows


def shown_rows(rows: Mapping[str, float | str]) -> dict[str, float | str]:
    """`summary_rows` under the names that a table shows."""
    return {SUMMARY_LABELS.get(name, name): value for name, value in rows.items()}


def write_json(data: Mapping[str, Any], path: Path) -> Path:
    """Write results, whole or not at all; what is not finite becomes null."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".tmp")
    partial.write_text(json.dumps(_plain(data), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(partial, path)
    return path


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return to_json(value)


def _plus_minus(interval: Interval, digits: int) -> str:
    """The mean, and below it half the interval's width, unless a single value leaves that unbounded."""
    half = (interval.high - interval.low) / 2
    mean = f"{interval.mean:.{digits}f}"
    return f"{mean}\n± {half:.{digits}f}" if math.isfinite(half) else mean
