"""Tic-tac-toe."""

from __future__ import annotations

from game_gym.spec import Budget, GameSpec, Params, State

_MARKS = "xo"


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's tic_tac_toe plays."""
    return (
        "Tic-tac-toe on a board of 3 rows and 3 columns. Player 0 places x and moves first, Player 1 "
        "places o; turns alternate, and a mark goes on an empty cell (shown as a dot).\n"
        "Three of one's own marks in a row, a column or a diagonal win. A full board without such a line "
        "is a draw.\n"
        "An action x(r,c) marks row r from the top and column c from the left, both counted from 0.\n"
        "Your return is 1 for a win, 0 for a draw, -1 for a loss."
    )


def describe(state: State, seat: int) -> str:
    """Returns the player's mark and the board, which is all there is to know."""
    return f"Your mark: {_MARKS[seat]}\n{state.observation_string(seat)}"


SPEC = GameSpec(
    name="tic_tac_toe",
    notation="your mark and the cell in brackets, row and column from 0, as x(0,2).",
    rules=rules,
    describe=describe,
    # Not in the task-id table, so upstream has no budget for it: this one does not lose to a random player.
    budget=Budget(1000, 20),
    fixed_names=True,
    # The board, which also says whose turn it is: there are 5,478.
    state_key=str,
)
