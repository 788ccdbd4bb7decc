"""Positions and menus as text for a terminal of 60 columns or more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.columns import Columns
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from game_gym.prompts import without_rules
from task_gym.visible import show_controls

BAR = 12
"""Characters of a bar of probability 1."""

LISTED = 60
"""The most actions that a menu lists."""

ROWS = 14
"""The most actions that a menu lists one below the other."""


def position(env: Any, observation: str, info: Mapping[str, Any]) -> str:
    """Returns the state as its seat sees it: the observation without rules and legal actions.

    Args:
        env: The environment, wrapped or not.
        observation: The observation.
        info: Its info.
    """
    local = env.unwrapped
    if "result" in info:
        return observation
    if local.state is None:
        return without_rules(observation, local.variant) if local.rules else observation
    text: str = local.variant.spec.describe(local.state, info["seat"])
    return text


def menu(
    info: Mapping[str, Any],
    probabilities: Sequence[float] | None = None,
    *,
    part: str = "",
    chosen: int | None = None,
) -> RenderableType:
    """Returns the legal actions to choose from.

    Args:
        info: The turn's info.
        probabilities: A policy's, one per legal action; then the likeliest come first.
        part: Only actions whose name has this part are listed.
        chosen: An action to mark.
    """
    actions = zip(info["legal_actions"], info["admissible_commands"], strict=True)
    rows = [(at, *pair) for at, pair in enumerate(actions) if part.lower() in pair[1].lower()]
    if probabilities is not None:
        rows.sort(key=lambda row: -probabilities[row[0]])
    listed = rows[: ROWS if probabilities is not None else LISTED]
    stack = Table.grid()
    if probabilities is None and len(listed) > ROWS:
        names = [Text(f"{action:>4}  {show_controls(name)}") for _, action, name in listed]
        stack.add_row(Columns(names, padding=(0, 2)))
    else:
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column(justify="right", no_wrap=True)
        table.add_column(overflow="fold")
        for at, action, name in listed:
            cells = [Text(str(action)), Text(show_controls(name))]
            if probabilities is not None:
                cells += [Text(f"{probabilities[at]:6.1%}"), Text("█" * round(BAR * probabilities[at]))]
            if chosen is not None:
                cells.append(Text("→" if action == chosen else ""))
            table.add_row(*cells, style="bold" if action == chosen else None)
        stack.add_row(table)
    if len(rows) > len(listed):
        more = f"… {len(rows) - len(listed)} more: type a part of a name to list these"
        stack.add_row(Text(more, style="dim"))
    return stack


def rule(title: str) -> Text:
    """Returns a heading between turns: short, so that it never wraps."""
    return Text(f"── {title} ", style="bold")


def box_of(text: str) -> Table:
    """Returns a text in a frame; lines longer than the terminal are folded. A server may have written it."""
    table = Table(box=box.ROUNDED, show_header=False)
    table.add_column(overflow="fold")
    table.add_row(Text(show_controls(text)))
    return table
