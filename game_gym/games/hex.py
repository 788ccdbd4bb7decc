"""Hex: connect your two edges."""

from __future__ import annotations

from string import ascii_lowercase

from game_gym.spec import Budget, GameSpec, Params, State

_STONES = "xo"
_EDGES = ("top and bottom", "left and right")


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's hex plays."""
    size = params["board_size"]
    last = ascii_lowercase[size - 1]
    swap = (
        "Instead of a first stone, Player 1 may swap: the x on the board is taken off and an o is put on the "
        "cell with its column and row exchanged (b1 becomes a2); then Player 0 moves.\n"
        if params["swap"]
        else ""
    )
    return (
        f"Hex on a board of {size} columns (a to {last}, from the left) and {size} rows (1 to {size}, from "
        "the top). Every row is drawn half a cell further to the right than the one above, so a cell "
        "touches up to six others: left and right in its row, above and above-right, below and below-left. "
        "For example b2 touches a2, c2, b1, c1, b3 and a3.\n"
        "Player 0 places x and moves first, Player 1 places o; turns alternate, and a stone goes on an empty "
        "cell (shown as a dot) and stays there.\n"
        f"{swap}"
        f"Player 0 wins with a chain of touching x from the top row (1) to the bottom row ({size}); Player 1 "
        f"wins with a chain of touching o from the left column (a) to the right column ({last}). One of "
        "them always succeeds.\n"
        "An action like c2 names the cell: column, then row.\n"
        "Your return is 1 for a win, -1 for a loss."
    )


def describe(state: State, seat: int) -> str:
    """Returns the player's stones and the board, which is all there is to know."""
    rows = state.observation_string(seat).split("\n")
    # Each row is indented by one more space, to the right of its number.
    board = [f"{number:<2} {row.rstrip()}" for number, row in enumerate(rows, 1)]
    columns = " ".join(ascii_lowercase[: len(rows)])
    return "\n".join([f"Your stones: {_STONES[seat]}, to connect {_EDGES[seat]}", f"   {columns}", *board])


SPEC = GameSpec(
    name="hex",
    notation="the cell, column and row, as c2.",
    rules=rules,
    describe=describe,
    params=lambda config: {"board_size": 5 + 2 * (config % 4)},
    variants=4,
    allowed={"board_size": (3, 4, 5, 6, 7, 8, 9, 10, 11), "swap": (False, True)},
    budget=Budget(1000, 50),
    fixed_names=True,
)
