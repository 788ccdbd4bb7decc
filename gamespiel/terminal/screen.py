"""Positions, menus and transcripts as text for a terminal of 60 columns or more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.columns import Columns
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from game_gym.prompts import without_rules
from game_gym.transcript import CHANCE, moves
from gamespiel.report.text import make_harmless

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
    if "result" in info or local.state is None:
        return without_rules(observation, local.variant) if _has_rules(local, info) else observation
    described: str = local.variant.spec.describe(local.state, info["seat"])
    return described


def _has_rules(local: Any, info: Mapping[str, Any]) -> bool:
    return bool(local.rules) and "result" not in info


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
    rows = [
        (action, name, None if probabilities is None else probabilities[i])
        for i, (action, name) in enumerate(
            zip(info["legal_actions"], info["admissible_commands"], strict=True)
        )
        if part.lower() in name.lower()
    ]
    if probabilities is not None:
        rows.sort(key=lambda row: -(row[2] or 0.0))
    shown = rows[: ROWS if probabilities is not None else LISTED]
    more = Text(f"… {len(rows) - len(shown)} more: type a part of a name to list these", style="dim")
    if probabilities is None and len(shown) > ROWS:
        listed = [Text(f"{action:>4}  {make_harmless(name)}") for action, name, _ in shown]
        return _stack_parts(Columns(listed, padding=(0, 2)), more if len(rows) > len(shown) else None)
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    for action, name, probability in shown:
        own = [] if probability is None else [f"{probability:6.1%}", "█" * round(BAR * probability)]
        mark = ["→" if action == chosen else ""] if chosen is not None else []
        table.add_row(
            str(action), Text(make_harmless(name)), *own, *mark, style="bold" if action == chosen else None
        )
    return _stack_parts(table, more if len(rows) > len(shown) else None)


def _stack_parts(*parts: RenderableType | None) -> Table:
    grid = Table.grid()
    for part in parts:
        if part is not None:
            grid.add_row(part)
    return grid


def transcript(variant: Any, history: Sequence[int], names: Mapping[int, str]) -> Table:
    """Returns a game's moves as a table: number, player and move.

    Args:
        variant: The game.
        history: Every action, by chance and all players.
        names: Names of seats, as "you"; others are "Player N".
    """
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("player", no_wrap=True)
    table.add_column("move", overflow="fold")
    for number, move in enumerate(moves(variant, history), 1):
        player = "chance" if move.player == CHANCE else names.get(move.player, f"Player {move.player}")
        table.add_row(str(number), Text(player), Text(move.name))
    return table


def rule(title: str = "") -> Text:
    """Returns a heading between turns: short, so that it never wraps."""
    return Text(f"── {title} " if title else "──", style="bold")


def box_of(text: str) -> Table:
    """Returns a text in a frame; lines longer than the terminal are folded. A server may have written it."""
    table = Table(box=box.ROUNDED, show_header=False)
    table.add_column(overflow="fold")
    table.add_row(Text(make_harmless(text)))
    return table
