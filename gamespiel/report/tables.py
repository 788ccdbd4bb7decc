"""The tables of an evaluation: of sampled games, of traces, and of exact values."""

from __future__ import annotations

import math
from collections.abc import Mapping

from rich.text import Text

from game_gym.exact import ExactResult
from gamespiel.agents.runs.evaluation import Measured, MeasuredReplies
from gamespiel.exact import ExactComparison
from gamespiel.report.grid import Grid
from task_gym.stats import Interval

SAMPLED_NOTE = (
    "score, success, return: mean and 95% interval (of the success rate, Wilson's; of equal scores, that of "
    "values in [0, 1]; equal returns have none). illegal moves: share of moves that the game refused; behind "
    "a mask there are none. legal mass: probability that the model gives to the legal answers when nothing "
    "masks it (- if no model plays)."
)
"""Printed below ``render_sampled``."""


def render_sampled(title: str, rows: Mapping[str, Measured]) -> Grid:
    """Returns a table with a row per group of episodes; intervals are below the means."""
    columns = ("score", "success", "return", "illegal\nmoves", "legal\nmass", "turns")
    table = Grid("", columns, title)
    for name, m in rows.items():
        table.add_row(
            "\n".join([name, f"{m.episodes:,} games", *([f"{m.faults:,} faults"] if m.faults else [])]),
            _plus_minus(m.score, 3),
            _format_share(m.success),
            "-" if m.returns is None else _plus_minus(m.returns, 2),
            f"{m.illegal_rate:.1%}",
            "-" if m.legal_mass is None else f"{m.legal_mass:.3f}",
            f"{m.length:.2f}",
        )
    return table


def replies_table(
    title: str, masked: Mapping[str, Measured], replies: Mapping[str, Mapping[str, MeasuredReplies]]
) -> Grid:
    """Returns a table of games played by replies, beside the same games behind the mask if they were played.

    Args:
        title: The title.
        masked: Measures of the masked policy by group, or nothing.
        replies: Measures of replies by group, by how they were written.
    """
    table = Grid("", ("score", "success", "illegal\nreplies", "games\ngiven up", "replies\ncut"), title)
    players: dict[str, Mapping[str, Measured]] = {**({"masked": masked} if masked else {}), **replies}
    groups = dict.fromkeys(name for rows in players.values() for name in rows)
    for group in groups:
        table.add_row(Text(group, style="bold"))
        for player, rows in players.items():
            if group not in rows:
                continue
            m = rows[group]
            faults = [f"{m.faults:,} faults"] * bool(m.faults)
            shares = ("-", "-", "-")
            if isinstance(m, MeasuredReplies):
                given_up = f"{m.given_up_share.mean:.1%} ({m.given_up:,})\n{_format_bounds(m.given_up_share)}"
                cut = "-" if m.cut_share is None else f"{m.cut_share.mean:.1%}"
                shares = (_format_share(m.illegal_share), given_up, cut)
            name = "\n".join([player, f"{m.episodes:,} games", *faults])
            table.add_row(name, _plus_minus(m.score, 3), _format_share(m.success), *shares)
    return table


def replies_note(masked: Mapping[str, Measured], replies: Mapping[str, Mapping[str, MeasuredReplies]]) -> str:
    """Returns the text below ``replies_table``: whether the scores agree, and what the columns are."""
    lines = []
    if "all" in masked and "all" in replies["sampled"]:
        score, own = masked["all"].score, replies["sampled"]["all"].score
        place = "within" if score.low <= own.mean <= score.high else "outside"
        lines = [
            f"sampled replies score {own.mean:.3f}, {place} the masked policy's interval "
            f"{score.low:.3f}–{score.high:.3f}."
        ]
    lines += [
        ("masked: an action sampled among the legal ones. " if masked else "")
        + "sampled, greedy: a reply over the whole vocabulary. illegal replies: those that name no legal "
        "action, with 95% Wilson interval. games given up: ended by illegal replies (their number). "
        "replies cut: by the token limit."
    ]
    return "\n".join(lines)


def describe_cuts(replies: Mapping[str, Mapping[str, MeasuredReplies]]) -> str:
    """Returns the shares of replies that the token limit has cut."""
    cut = {how: rows["all"].cut_share for how, rows in replies.items() if "all" in rows}
    shown = ", ".join(f"{how} {share.mean:.1%}" for how, share in cut.items() if share is not None)
    return f"replies cut by the token limit: {shown or '-'}"


def render_scores(title: str, rows: Mapping[str, Measured]) -> Grid:
    """Returns a table with a row per group of traces, with all scores and their intervals."""
    names = list(rows["all"].by_scoring)
    table = Grid("", ("traces", *names), f"{title}, percent and 95% Wilson")
    for name, m in rows.items():
        scores = [m.by_scoring[scoring] for scoring in names]
        shown = [f"{100 * s.mean:.1f}\n{100 * s.low:.1f}–{100 * s.high:.1f}" for s in scores]
        table.add_row(name, str(m.episodes), *shown)
    return table


def exact_table(comparison: ExactComparison) -> Grid:
    """Returns a table of values from each seat, the best response's, shares and exploitability."""
    shown = comparison.policy
    title = (
        f"{shown.game} against {shown.opponent}, exact over {shown.information_states:,} information states"
    )
    table = Grid("", ("seat 0", "seat 1", "share of best\nresponse", "exploitability"), title)
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
