"""``gamespiel runs diff A B``: the keys and the results in which two runs differ, and where they part."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gamespiel.config import to_dict
from gamespiel.overview.reading import Run, read_run
from gamespiel.report.text import print_plain

_CLOCK = re.compile(r"(time|machine)/.*|seconds")
"""Metrics that differ between any two runs."""


Difference = tuple[str, Any, Any]
"""A key or a metric, and its value in both runs."""


def compare_runs(console: Console, first: Path, second: Path) -> None:
    """Prints what differs between two runs.

    Args:
        console: The console to print on.
        first: A run's folder.
        second: Another one's.

    Raises:
        TaskGymError: one of them is no run, or cannot be read.
    """
    runs = read_run(first), read_run(second)
    changed = differing_keys(*runs)
    _print_table(console, "keys", changed, "the configurations are equal, but for the folders")
    results = _list_differences(*(run.summary.get("after", {}) for run in runs))
    _print_table(console, "after training", results, "no measures after training differ")
    parting = find_first_difference(*runs)
    if parting is None:
        steps = min(run.step for run in runs)
        print_plain(console, f"the metrics of all {steps} common steps are equal, but for times")
        return
    step, metrics = parting
    print_plain(console, f"the runs part in step {step}:")
    _print_table(console, f"step {step}", metrics, "")


def differing_keys(first: Run, second: Run) -> list[Difference]:
    """Returns the keys of the configurations that differ, but for ``run.output_dir``, with both values."""
    return [
        (f"{section}.{key}", *values)
        for section, *both in _list_differences(to_dict(first.config), to_dict(second.config))
        for key, *values in _list_differences(*both)
        if (section, key) != ("run", "output_dir")
    ]


def find_first_difference(first: Run, second: Run) -> tuple[int, list[Difference]] | None:
    """Returns the first step of both runs whose metrics differ, but for times, and these; None if none does.

    A metric that one of them never logged is left out: another version wrote it.
    """
    others = {row["step"]: row for row in second.rows}
    logged = {key for row in first.rows for key in row} & {key for row in second.rows for key in row}
    for row in first.rows:
        differences = _list_differences(row, others.get(row["step"], row))
        if metrics := [one for one in differences if one[0] in logged and not _CLOCK.fullmatch(one[0])]:
            return row["step"], metrics
    return None


def _list_differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[Difference]:
    """Returns what differs, with both values; None where one is missing."""
    pairs = [(key, first.get(key), second.get(key)) for key in dict.fromkeys([*first, *second])]
    # A NaN is not equal to itself, and yet two of them are no difference.
    return [(key, old, new) for key, old, new in pairs if old != new and (old == old or new == new)]


def _print_table(console: Console, title: str, rows: list[Difference], none: str) -> None:
    if not rows:
        print_plain(console, none)
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1), pad_edge=False)
    for name in (title, "first", "second"):
        table.add_column(name, overflow="fold", justify="left" if name == title else "right")
    for key, first, second in rows:
        table.add_row(Text(key), Text(_format(first)), Text(_format(second)))
    console.print(table)


def _format(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "-" if value is None else str(value)
