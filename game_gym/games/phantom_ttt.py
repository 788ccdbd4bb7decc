"""Phantom tic-tac-toe: the other's marks are seen only when they are bumped into."""

from __future__ import annotations

from functools import lru_cache

from game_gym.spec import Budget, GameSpec, Params, State

_MARKS = "xo"


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's phantom_ttt plays, by taken cells and announcements."""
    if params["gameversion"] == "abrupt":
        taken = "it is shown to you from then on, nothing is placed, and the turn passes"
    else:
        taken = "it is shown to you from then on, nothing is placed, and you try another cell"
    if params["obstype"] == "reveal-numturns":
        told = "Both players are told when the other has tried a cell, and not which nor with what success."
    else:
        told = "Nobody is told what the other tries, nor how often."
    return (
        "Tic-tac-toe with hidden marks, on a board of 3 rows and 3 columns. Player 0 places x and moves "
        "first, Player 1 places o. You see your own marks; the other's stay hidden.\n"
        "In your turn try a cell that is a dot in your view. If it is free, your mark is placed and the turn "
        f"passes. If the other's mark is there, {taken}.\n"
        f"{told}\n"
        "Three of one's own marks in a row, a column or a diagonal win. A full board without such a line "
        "is a draw.\n"
        "A cell (r,c) is row r from the top and column c from the left, both counted from 0; x(r,c) and "
        "o(r,c) try it.\n"
        "Your return is 1 for a win, 0 for a draw, -1 for a loss."
    )


def describe(state: State, seat: int) -> str:
    """Returns the seat's mark, its view of the board, and the tries in order, as far as it knows them."""
    return _words(state.information_state_string(seat), seat)


@lru_cache(maxsize=4096)
def _words(information: str, seat: int) -> str:
    # Three lines of view, then the number of turns if it is announced, then "PLAYER,CELL " per try.
    view, rest = information.split("\n")[:3], information.split("\n")[3:]
    tries = []
    for entry in rest[-1].split():
        player, cell = entry.split(",")
        tries.append("Player " + player if cell == "?" else _try(int(cell), view, seat))
    return (
        f"Your mark: {_MARKS[seat]}\n"
        f"Your view:\n{chr(10).join(view)}\n"
        f"{'Tries' if len(rest) > 1 else 'Your tries'}: {', '.join(tries) or 'none'}"
    )


def _try(cell: int, view: list[str], seat: int) -> str:
    row, column = divmod(cell, 3)
    return f"you ({row},{column}) {'placed' if view[row][column] == _MARKS[seat] else 'taken'}"


SPEC = GameSpec(
    name="phantom_ttt",
    notation="your mark and the cell in brackets, row and column from 0, as x(0,2).",
    rules=rules,
    describe=describe,
    params=lambda config: {"obstype": ("reveal-nothing", "reveal-numturns")[config % 2]},
    variants=2,
    allowed={
        "obstype": ("reveal-nothing", "reveal-numturns"),
        "gameversion": ("classical", "abrupt"),
    },
    budget=Budget(3000, 150),
    fixed_names=True,
)
