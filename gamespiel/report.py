"""Results as tables for people and as plain data for programs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from game_gym.exact import ExactResult
from gamespiel.agents.evaluation import Measured
from gamespiel.agents.loggers import to_json
from gamespiel.agents.stats import Interval
from gamespiel.exact import ExactComparison


def sampled_table(title: str, rows: Mapping[str, Measured]) -> Table:
    """A row a seat and one for all of them."""
    # Narrow enough for 80 columns.
    table = Table(
        title=title, title_justify="left", box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0)
    )
    for name in ("", "games", "score", "success", "95% Wilson", "return", "illegal", "turns"):
        table.add_column(name, justify="left" if not name else "right")
    for name, m in rows.items():
        table.add_row(
            name,
            str(m.episodes) + (f" (+{m.faults} faults)" if m.faults else ""),
            _plus_minus(m.score, 3),
            f"{m.success.mean:.1%}",
            f"{100 * m.success.low:.1f}–{100 * m.success.high:.1f}",
            "-" if m.returns is None else _plus_minus(m.returns, 2),
            f"{m.illegal_rate:.1%}",
            f"{m.length:.2f}",
        )
    return table


def scored_table(title: str, rows: Mapping[str, Measured]) -> Table:
    """A row a group of traces, with all the scores."""
    table = Table(
        title=f"{title}, percent and 95% Wilson",
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    names = list(rows["all"].by_scoring)
    for name in ("", "traces", *names):
        table.add_column(name, justify="left" if not name else "right")
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
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("", "seat 0", "seat 1", "share of best response", "exploitability"):
        table.add_column(name, justify="left" if not name else "right")
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
    return rows


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
    return f"{interval.mean:.{digits}f} ± {(interval.high - interval.low) / 2:.{digits}f}"
