"""Checkers (English draughts)."""

from __future__ import annotations

import re
from string import ascii_lowercase

from game_gym.spec import Budget, GameSpec, Params, State

# OpenSpiel's marks for men and kings, in letters that no label has.
_MARKS = str.maketrans("o8+*", "oOxX")
_SIDES = ("o (kings O), moving up", "x (kings X), moving down")
# A game without captures for this many moves is drawn.
_QUIET = 40


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's checkers plays."""
    rows, columns = params["rows"], params["columns"]
    last = ascii_lowercase[columns - 1]
    return (
        f"Checkers on {rows} rows (1 at the bottom) and {columns} columns (a to {last}); empty squares are "
        "dots. Player 0 has the men o on the three lowest rows, moving up, and moves first. Player 1 has "
        "the men x on the three highest rows, moving down.\n"
        "A man moves one square diagonally forward to an empty square. It captures by jumping diagonally "
        "forward over an enemy piece to the empty square right behind it; that piece is removed. Men that "
        "reach the far row become kings (O, X), which move and capture in the same way backward too.\n"
        "A player who can capture must, with any piece that can. After a capture the same piece must go "
        "on capturing while it can, one jump an action; becoming a king ends the turn.\n"
        f"A player who cannot move loses. The game is drawn after {_QUIET} moves in a row, both sides' "
        "counted, without a capture.\n"
        "An action is the square moved from and the square moved to, as b6c5.\n"
        "Your return is 1 for a win, 0 for a draw, -1 for a loss."
    )


def describe(state: State, seat: int) -> str:
    """Returns the board, the count of moves without a capture, and a jump under way: all the rules use."""
    *rows, columns = state.observation_string(seat).rstrip("\n").split("\n")
    # Nothing separates a row's label from its marks, and 8 is both a label and a king.
    width = len(columns) - len(columns.lstrip())
    board = [f"{row[:width]} {' '.join(row[width:].translate(_MARKS))}" for row in rows]
    return "\n".join(
        [
            f"You: {_SIDES[seat]}",
            *board,
            f"{columns[:width]} {' '.join(columns[width:])}",
            f"Moves without a capture: {_quiet(state.history())} of {_QUIET}",
            f"Must go on capturing from: {_jumper(state) or 'none'}",
        ]
    )


def _quiet(history: list[int]) -> int:
    """Returns how many moves at the end of the history took nothing: an odd action id is a jump."""
    count = 0
    for action in reversed(history):
        if action % 2:
            break
        count += 1
    return count


def _jumper(state: State) -> str | None:
    """Returns the square from which the player to move has to go on jumping."""
    moves = state.full_history()
    if not moves or moves[-1].player != state.current_player():
        return None
    _, landed = re.findall(r"[a-z]\d+", state.action_to_string(moves[-1].player, moves[-1].action))
    return str(landed)


SPEC = GameSpec(
    name="checkers",
    notation="the square moved from and the square moved to, as b6c5.",
    rules=rules,
    describe=describe,
    # OpenSpiel mixes up the squares of a jump under way if there are more columns than rows.
    allowed={"rows": (8, 10, 12), "columns": (6, 8)},
    budget=Budget(500, 50),
    fixed_names=True,
)
