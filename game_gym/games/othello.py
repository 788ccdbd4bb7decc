"""Othello: enclosed discs change sides."""

from __future__ import annotations

from game_gym.spec import Budget, GameSpec, Params, State

_DISCS = "xo"


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's othello plays."""
    return (
        "Othello on a board of 8 columns (a to h, from the left) and 8 rows (1 to 8, from the top). Player 0 "
        "has the discs x and moves first, Player 1 has o; a dot is an empty cell. The game starts with o on "
        "d4 and e5, x on e4 and d5.\n"
        "A move puts a disc of your own on an empty cell so that, in at least one of the eight straight "
        "directions, an unbroken line of opposing discs lies between it and another disc of yours. All "
        "discs so enclosed, in every direction, become yours. Only moves that turn at least one disc are "
        "allowed; a player who has none must pass.\n"
        "The game ends when neither player can move. Whoever has more discs wins; as many is a draw.\n"
        "An action like d3 names the cell: column, then row.\n"
        "Your return is 1 for a win, 0 for a draw, -1 for a loss."
    )


def describe(state: State, seat: int) -> str:
    """Returns the player's disc and the board, which is all there is to know."""
    # A line with the player to move, the columns, eight rows labelled on both sides, the columns again.
    lines = state.observation_string(seat).split("\n")[1:10]
    board = "\n".join(line[:17] for line in lines).replace("-", ".")
    cells = board.split("\n", 1)[1]
    return f"Your discs: {_DISCS[seat]}\n{board}\nCount: x {cells.count('x')}, o {cells.count('o')}"


SPEC = GameSpec(
    name="othello",
    notation="the cell, column and row, as d3; or pass.",
    rules=rules,
    describe=describe,
    budget=Budget(1000, 20),
    fixed_names=True,
)
