"""The tables that commands print. A narrow terminal keeps their first column, and last columns go."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from task_gym.stats import Interval

if TYPE_CHECKING:  # most commands print tables without PyTorch
    from gamespiel.agents.runs.evaluation import Measured, MeasuredReplies
    from gamespiel.endpoints.completion import Usage
    from gamespiel.exact_comparison import ExactComparison
    from gamespiel.report.endpoints import Row

SAMPLED_NOTE = (
    "score, success, return: mean and 95% interval (of the score, that of values in [0, 1], whatever they "
    "are; of the success rate, Wilson's; of returns the normal one, too narrow if wins are rare, and none "
    "if all are equal). illegal moves: share of moves that the game refused; behind a mask there are none. "
    "legal mass: probability that the model gives to the legal answers when nothing masks it (- if no model "
    "plays)."
)
"""Printed below ``evaluation_table`` of games."""

SUMMARY_LABELS = {"illegal rate": "illegal moves played", "legal mass": "legal mass without mask"}
"""Names in ``summary_table`` of measures whose keys do not explain themselves."""

SUMMARY_NOTE = (
    "illegal moves played: share of moves that the game refused; behind a mask there are none. legal mass "
    "without mask: probability that the model gives to the legal answers when nothing masks it."
)
"""Printed below ``summary_table``."""

PAIRED_NOTE = (
    "change: mean of the differences, episode by episode, of the same tasks, seeds and seats, with its 95% "
    "interval. None of these episodes was trained on."
)
"""Printed below ``make_pairs_table``."""


class Grid(Table):
    """A table that leaves out its last columns where they do not fit, and then says which.

    Args:
        first: The first column's heading; its cells are folded where they do not fit, and never cut.
        columns: The other columns' headings.
        title: The title; None for none.
        padding: Spaces between columns, beside the one that is always there.
        least: Characters of the first column that stay on a line, if its cells have as many.
    """

    def __init__(
        self,
        first: str,
        columns: Sequence[str],
        title: str | None = None,
        padding: int = 0,
        least: int = 8,
    ) -> None:
        super().__init__(
            title=None if title is None else Text(title), title_justify="left", box=box.SIMPLE_HEAD,
            show_edge=False, padding=(0, padding, 0, 0), pad_edge=False,
        )  # fmt: skip
        self._least = least
        self.add_column(first, overflow="fold")
        for name in columns:
            self.add_column(name, justify="right", no_wrap=True)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        cells = [cell for cell in self.columns[0].cells if isinstance(cell, str | Text)]
        self.columns[0].min_width = min(self._least, max((len(str(cell)) for cell in cells), default=0))
        columns, left_out = self.columns, list[str]()
        while len(self.columns) > 2 and self._measure_least(console, options) > options.max_width:
            left_out.insert(0, " ".join(str(self.columns[-1].header).split()))
            self.columns = self.columns[:-1]
        try:
            yield from super().__rich_console__(console, options)
        finally:
            self.columns = columns
        if left_out:
            yield Text(f"left out at {options.max_width} columns: {', '.join(left_out)}", style="dim")

    def _measure_least(self, console: Console, options: ConsoleOptions) -> int:
        first, *others = self.columns
        unlimited = options.update_width(1000)
        widths = [self._measure_column(console, unlimited, column).maximum for column in others]
        # A column has its padding on the right, which the last one does without.
        return (first.min_width or 0) + self.padding[1] + sum(widths) + self._extra_width


def evaluation_table(title: str, rows: Mapping[str, Measured], unit: str = "games") -> RenderableType:
    """Returns measures by group as a table: all scores of traces, or the measures of games with a note.

    Args:
        title: The title.
        rows: The measures by group.
        unit: What the kind's episodes are called.
    """
    if _has_scores(rows):
        return traces_table(title, rows)
    columns = ("score", "success", "return", "illegal\nmoves", "legal\nmass", "turns")
    table = Grid("", columns, title)
    for name, measures in rows.items():
        table.add_row(
            _format_group(name, measures, unit),
            _plus_minus(measures.score, 3),
            _format_share(measures.success),
            "-" if measures.returns is None else _plus_minus(measures.returns, 2),
            f"{measures.illegal_rate:.1%}",
            "-" if measures.legal_mass is None else f"{measures.legal_mass:.3f}",
            f"{measures.length:.2f}",
        )
    return Group(table, Text(SAMPLED_NOTE))


def reply_evaluation_table(
    title: str, masked: Mapping[str, Measured], replies: Mapping[str, Mapping[str, MeasuredReplies]]
) -> RenderableType:
    """Returns measures by group of tasks that were played by replies as text, with a note.

    Args:
        title: The title.
        masked: Measures of the masked policy on the same episodes; empty if it did not play.
        replies: Measures of replies, by how they were written ("sampled", "greedy").
    """
    if any(map(_has_scores, replies.values())):
        tables = [traces_table(f"{title}, {how}", rows) for how, rows in replies.items() if rows]
        shares = {how: rows["all"].cut_share for how, rows in replies.items() if "all" in rows}
        listed = ", ".join(f"{how} {share.mean:.1%}" for how, share in shares.items() if share is not None)
        return Group(*tables, Text(f"replies cut by the token limit: {listed or '-'}"))
    return Group(replies_table(title, masked, replies), Text(replies_note(masked, replies)))


def _has_scores(rows: Mapping[str, Measured]) -> bool:
    """Returns whether the episodes have several scores, as those of traces do."""
    return "all" in rows and bool(rows["all"].by_scoring)


def replies_table(
    title: str, masked: Mapping[str, Measured], replies: Mapping[str, Mapping[str, MeasuredReplies]]
) -> Grid:
    """Returns a table of games played by replies, beside the same games behind the mask, if any."""
    table = Grid("", ("score", "success", "illegal\nreplies", "games\ngiven up", "replies\ncut"), title)
    for group in dict.fromkeys(name for rows in (masked, *replies.values()) for name in rows):
        table.add_row(Text(group, style="bold"))
        if group in masked:
            m = masked[group]
            cells = (_format_group("masked", m), _plus_minus(m.score, 3), _format_share(m.success))
            table.add_row(*cells, "-", "-", "-")
        for how, rows in replies.items():
            if group in rows:
                r = rows[group]
                given_up = f"{r.given_up_share.mean:.1%} ({r.given_up:,})\n{_format_bounds(r.given_up_share)}"
                cut = "-" if r.cut_share is None else f"{r.cut_share.mean:.1%}"
                cells = (_format_group(how, r), _plus_minus(r.score, 3), _format_share(r.success))
                table.add_row(*cells, _format_share(r.illegal_share), given_up, cut)
    return table


def replies_note(masked: Mapping[str, Measured], replies: Mapping[str, Mapping[str, MeasuredReplies]]) -> str:
    """Returns the text below ``replies_table``: whether the scores agree, and what the columns are."""
    agreement, explained = "", ""
    if masked:
        explained = "masked: an action sampled among the legal ones. "
    if "all" in masked and "all" in replies["sampled"]:
        score, mean = masked["all"].score, replies["sampled"]["all"].score.mean
        place = "within" if score.low <= mean <= score.high else "outside"
        agreement = (
            f"sampled replies score {mean:.3f}, {place} the masked policy's interval "
            f"{score.low:.3f}–{score.high:.3f}.\n"
        )
    return (
        f"{agreement}{explained}sampled, greedy: a reply over the whole vocabulary. illegal replies: those "
        "that name no legal action, with 95% Wilson interval. games given up: ended by illegal replies "
        "(their number). replies cut: by the token limit."
    )


def traces_table(title: str, rows: Mapping[str, Measured]) -> Grid:
    """Returns a table with a row per group of traces, with all scores and their intervals."""
    names = list(rows["all"].by_scoring)
    table = Grid("", ("traces", *names), f"{title}, percent and 95% Wilson")
    for name, measures in rows.items():
        scores = [measures.by_scoring[scoring] for scoring in names]
        cells = [f"{100 * score.mean:.1f}\n{_format_bounds(score)}" for score in scores]
        table.add_row(name, str(measures.episodes), *cells)
    return table


def exact_table(comparison: ExactComparison) -> Grid:
    """Returns a table of values from each seat, the best response's, shares and exploitability."""
    policy = comparison.policy
    states = f"exact over {policy.information_states:,} information states"
    columns = ("seat 0", "seat 1", "share of best\nresponse", "exploitability")
    table = Grid("", columns, f"{policy.game} against {policy.opponent}, {states}")
    results = {"untrained": comparison.untrained, "policy": policy, "greedy": comparison.greedy}
    for name, result in results.items():
        if result is not None:
            values = [f"{value:+.4f}" for value in result.values]
            table.add_row(name, *values, f"{result.share:.1%}", f"{result.exploitability:.4f}")
    table.add_row("best response", *[f"{value:+.4f}" for value in policy.best], "100.0%", "")
    return table


def endpoint_table(title: str, rows: Mapping[str, Row], usage: Usage, cost: float | None) -> RenderableType:
    """Returns a table with a row per group, and the tokens and their price below."""
    table = Grid("", ("episodes", "score", "success", "given\nup", "refused\nreplies"), title)
    for name, row in rows.items():
        faults = f"\n{row.faults:,} faults" if row.faults else ""
        means = [
            "-" if mean is None else f"{mean.mean:.3f}\n{mean.low:.3f}–{mean.high:.3f}"
            for mean in (row.score, row.success)
        ]
        counts = ["-" if count is None else f"{count:,}" for count in (row.given_up, row.refused)]
        table.add_row(name, f"{row.episodes:,}{faults}", *means, *counts)
    price = "" if cost is None else f", {cost:.4f} dollars"
    note = f"{usage.prompt_tokens:,} prompt tokens, {usage.completion_tokens:,} completion tokens{price}"
    return Group(table, Text(note))


def summary_table(before: Mapping[str, float | str], after: Mapping[str, float | str]) -> Grid:
    """Returns a table with a row per measure: before training, after it and, of two numbers, the change."""
    table = Grid("", ("before", "after", "change"), padding=1)
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name), after.get(name)
        change = ""
        if isinstance(old, int | float) and isinstance(new, int | float):
            change = f"{new - old:+.3f}"
        cells = [f"{value:.3f}" if isinstance(value, int | float) else value or "-" for value in (old, new)]
        table.add_row(Text(SUMMARY_LABELS.get(name, name)), *map(Text, cells), Text(change, style="bold"))
    return table


def make_pairs_table(rows: Mapping[str, tuple[int, float, float, Interval]]) -> Grid:
    """Returns a table with a row per group of episodes: their number, scores before and after, the change."""
    table = Grid("score", ("episodes", "before", "after", "change", "95% interval"), padding=1)
    for name, (episodes, before, after, (change, low, high)) in rows.items():
        table.add_row(
            Text(name), f"{episodes:,}", f"{before:.3f}", f"{after:.3f}",
            Text(f"{change:+.3f}", style="bold"), f"{low:+.3f} … {high:+.3f}",
        )  # fmt: skip
    return table


def _format_group(name: str, measures: Measured, unit: str = "games") -> str:
    """Returns a group's name and, on further lines, the numbers of its episodes and of its faults."""
    faults = [f"{measures.faults:,} faults"] if measures.faults else []
    return "\n".join([name, f"{measures.episodes:,} {unit}", *faults])


def _format_share(interval: Interval | None) -> str:
    """Returns a share in percent and, on a second line, its interval."""
    return "-" if interval is None else f"{interval.mean:.1%}\n{_format_bounds(interval)}"


def _format_bounds(interval: Interval) -> str:
    return f"{100 * interval.low:.1f}–{100 * interval.high:.1f}"


def _plus_minus(interval: Interval, digits: int) -> str:
    """Returns the mean and, on a second line if it is finite, the distance to the interval's farther end."""
    half = interval.half_width
    mean = f"{interval.mean:.{digits}f}"
    return f"{mean}\n± {half:.{digits}f}" if math.isfinite(half) else mean
