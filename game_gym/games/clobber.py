"""Clobber: every move takes a piece, and who cannot take loses."""

from __future__ import annotations

from string import ascii_lowercase

from game_gym.spec import Budget, GameSpec, Params, State

_PIECES = "ox"


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's clobber plays."""
    rows, columns = params["rows"], params["columns"]
    last = ascii_lowercase[columns - 1]
    return (
        f"Clobber on a board of {columns} columns (a to {last}, from the left) and {rows} "
        f"rows (1 to {rows}, from the bottom). At the start every cell is filled, o and x alternating as on "
        "a chessboard, with o on a1. Player 0 has o and moves first, Player 1 has x; turns alternate.\n"
        "A move takes one of your pieces to the cell directly above, below, left or right of it, which must "
        "hold an opposing piece; that piece is removed. The cell left behind stays empty (shown as a dot). "
        "There are no other moves: no steps to empty cells, none diagonally.\n"
        "Whoever cannot move loses.\n"
        "An action like a1b1 names the cell a piece leaves and the cell it goes to, as column, then row.\n"
        "Your return is 1 for a win, -1 for a loss."
    )


def describe(state: State, seat: int) -> str:
    """Returns the player's pieces and the board, which is all there is to know."""
    # Rows from the top, each with its number joined to the cells, then the columns' letters.
    *rows, letters = state.observation_string(seat).rstrip("\n").split("\n")
    width = len(letters.strip())
    board = [f"{row[:-width]} {' '.join(row[-width:])}" for row in [*rows, letters]]
    return "\n".join([f"Your pieces: {_PIECES[seat]}", *board])


SPEC = GameSpec(
    name="clobber",
    notation="the cell that a piece leaves and the cell that it goes to, as a1b1.",
    rules=rules,
    describe=describe,
    params=lambda config: {"rows": 5 + config % 3, "columns": 5 + config % 3},
    variants=3,
    allowed={"rows": (3, 4, 5, 6, 7, 8), "columns": (3, 4, 5, 6, 7, 8)},
    budget=Budget(1500, 100),
    fixed_names=True,
)
