"""Boards and cards of a position as plain data, which the page draws. Other games are shown as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

Board = dict[str, Any]

_RANKS = "JQKA"


def read_board(game: str, text: str) -> Board | None:
    """Returns what to draw for a position; None for a game that has no picture.

    Args:
        game: OpenSpiel's short name.
        text: The state as OpenSpiel writes it.

    A picture has a ``kind``. "grid" (squares), "points" (stones on crossings) and "hex" have ``rows``, one
    text per row with a character per field: "." is empty, "x" and "o" are the first and the second player's
    pieces, "#" is gone; chess has the letters of FEN, and checkers "X" and "O" for kings. "numbers" has
    ``rows`` of numbers. "cards" has ``groups`` of (label, cards).
    """
    read = _READERS.get(game)
    return None if read is None else read(text)


def _make_grid_reader(
    pattern: str, signs: str = "", to: str = ".xo#", **picture: str
) -> Callable[[str], Board | None]:
    """Returns a reader of boards with a line per row.

    Args:
        pattern: Matches a row, with its fields as the only group.
        signs: The game's signs for those of ``to``, as far as they differ.
        to: The picture's signs.
        picture: What else the picture has, such as its ``kind``, which is "grid" if it is left out.
    """
    table = str.maketrans(signs, to[: len(signs)])

    def read(text: str) -> Board | None:
        rows = [re.sub(r"\s", "", row).translate(table) for row in re.findall(pattern, text, re.MULTILINE)]
        rows = [row for row in rows if row]
        return {"kind": "grid", **picture, "rows": rows} if rows else None

    return read


def _read_chess(text: str) -> Board:
    placed = re.sub(r"\d", lambda match: "." * int(match[0]), text.split()[0])
    return {"kind": "grid", "pieces": "chess", "rows": placed.split("/")}


def _read_numbers(text: str) -> Board:
    rows = [[int(cell) for cell in row.split()] for row in text.splitlines() if row]
    return {"kind": "numbers", "rows": rows}


def _read_leduc(text: str) -> Board | None:
    match = re.search(r"Cards \(public player_0 player_1\): (-?\d+) (-?\d+) (-?\d+)", text)
    if match is None:  # more than two players
        return None
    names = [_name_card(int(number)) for number in match.groups()]
    pot = re.search(r"^Pot: (\d+)", text, re.MULTILINE)
    groups = [["Player 0", [names[1]]], ["public", [names[0]]], ["Player 1", [names[2]]]]
    return {"kind": "cards", "groups": groups, "note": f"pot {pot[1]}" if pot else ""}


def _name_card(number: int) -> str:
    return _RANKS[number // 2] + "♠♥"[number % 2] if 0 <= number < 2 * len(_RANKS) else "?"


def _read_kuhn(text: str) -> Board:
    dealt = [part for part in text.split() if part.isdigit()]
    groups = [[f"Player {seat}", [_RANKS[int(card)]]] for seat, card in enumerate(dealt)]
    return {"kind": "cards", "groups": groups, "note": ""}


def _read_blackjack(text: str) -> Board:
    groups = [
        [who, [card[1:].replace("T", "10") + _SUITS.get(card[0], "") for card in cards.split()]]
        for who, cards in re.findall(r"^(Player 0|Dealer): Cards:([ \w?]*)$", text, re.MULTILINE)
    ]
    return {"kind": "cards", "groups": groups, "note": ""}


_SUITS = {"C": "♣", "D": "♦", "H": "♥", "S": "♠"}

_PLAIN = _make_grid_reader(r"^([.xo]+)$")
_READERS: dict[str, Callable[[str], Board | None]] = {
    "2048": _read_numbers,
    "amazons": _make_grid_reader(r"^([.XO#]+)$", ".OX#"),
    "blackjack": _read_blackjack,
    "breakthrough": _make_grid_reader(r"^[^ .]([.bw]+)$", ".bw"),
    # White "o" with kings "8", black "+" with kings "*"; black fields are the second player's here.
    "checkers": _make_grid_reader(r"^\d([.o+8*]{8})$", "o8+*", "xXoO", pieces="checkers"),
    "chess": _read_chess,
    "clobber": _make_grid_reader(r"^\d([.ox]+)$", ".ox"),
    "connect_four": _PLAIN,
    "go": _make_grid_reader(r"^ *\d+ ([+XO]+)$", "+XO", kind="points"),
    # Letters other than x and o mark stones that are connected to an edge.
    "hex": _make_grid_reader(r"^([ .xoyzpqXO]+)$", "yzXpqO", "xxxooo", kind="hex"),
    "kuhn_poker": _read_kuhn,
    "leduc_poker": _read_leduc,
    "othello": _make_grid_reader(r"^\d ([-xo ]+) \d$", "-xo"),
    "phantom_ttt": _PLAIN,
    "tic_tac_toe": _PLAIN,
}
