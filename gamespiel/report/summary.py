"""The summary table at the end of a run: its measures before and after training."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text

from gamespiel.agents.runs.evaluation import Measured, MeasuredReplies
from gamespiel.exact import ExactComparison
from gamespiel.report.grid import Grid

SHARE = "share of best response"
"""The name of the exact measure that every solved game has."""

SUMMARY_LABELS = {"illegal rate": "illegal moves played", "legal mass": "legal mass without mask"}
"""Names in the table of measures whose keys do not explain themselves."""

SUMMARY_NOTE = (
    "illegal moves played: share of moves that the game refused; behind a mask there are none. legal mass "
    "without mask: probability that the model gives to the legal answers when nothing masks it."
)
"""Printed below the table at the end of a run."""


def summary_rows(
    sampled: Mapping[str, Measured], comparison: ExactComparison | None, *, exploitability: bool = False
) -> dict[str, float | str]:
    """Returns the measures that the summary table compares, exploitability among them if asked for."""
    rows: dict[str, float | str] = {}
    if comparison is not None:
        if exploitability:
            rows["exploitability"] = comparison.policy.exploitability
        rows[SHARE] = comparison.policy.share
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
        if isinstance(everyone, MeasuredReplies) and everyone.replies:
            rows["cut replies"] = everyone.cut_replies / everyone.replies
        if everyone.legal_mass is not None:
            rows["legal mass"] = everyone.legal_mass
    return rows


def rename_rows(rows: Mapping[str, float | str]) -> dict[str, float | str]:
    """Returns ``summary_rows`` with the names that a table shows."""
    return {SUMMARY_LABELS.get(name, name): value for name, value in rows.items()}


def summary_table(before: Mapping[str, float | str], after: Mapping[str, float | str]) -> Grid:
    """Returns a table with a row per measure: before training, after it and, of two numbers, the change."""
    table = Grid("", ("before", "after", "change"), padding=1)
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name), after.get(name)
        change = Text("")
        if isinstance(old, int | float) and isinstance(new, int | float):
            change = Text(f"{new - old:+.3f}", style="bold")
        table.add_row(Text(name), _format_cell(old), _format_cell(new), change)
    return table


def _format_cell(value: float | str | None) -> Text:
    if value is None:
        return Text("-")
    return Text(value if isinstance(value, str) else f"{value:.3f}")
