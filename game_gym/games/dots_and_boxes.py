"""Dots and boxes."""

from __future__ import annotations

from game_gym.spec import Budget, GameSpec, Params, State

# OpenSpiel's box drawing, in plain characters.
_PLAIN = str.maketrans({**dict.fromkeys("┌┐└┘├┤┬┴┼", "+"), "─": "-", "│": "|", "╴": " ", "╶": " "})


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's dots_and_boxes plays."""
    rows, columns = params["num_rows"], params["num_cols"]
    value = (
        "Your return is your number of boxes minus the opponent's."
        if params["utility_margin"]
        else "Your return is 1 if you own more boxes than the opponent, 0 for equal numbers, -1 for fewer."
    )
    return (
        f"Dots and boxes on {rows} rows and {columns} columns of boxes; the dots (+) are their corners. "
        "Player 0 moves first.\n"
        "A move draws one line between two neighbouring dots. Whoever draws the fourth side of a box owns "
        "the box (one line can close two) and must move again; otherwise the other player moves. The game "
        "ends when every line is drawn.\n"
        "An action is P1(h,r,c) or P1(v,r,c), P1 standing for Player 0 and P2 for Player 1. h is the "
        f"horizontal line in row r of dots, above box column c; row 0 is the top edge, and row {rows} the "
        f"bottom edge. v is the vertical line in row r of boxes, left of box column c; column {columns} is "
        "the right edge. The board is labelled so: h0, h1, … at the rows of dots, v0, v1, … at the rows "
        "of boxes; the numbers beside h and v on top are the columns c.\n"
        "A box shows its owner: 1 for Player 0, 2 for Player 1.\n"
        f"{value}"
    )


def describe(state: State, seat: int) -> str:
    """Returns the lines drawn and the boxes owned, which is all there is to know."""
    rows = state.observation_string(seat).translate(_PLAIN).splitlines()
    columns = len(rows[0]) // 4
    boxes = "".join(rows[1::2])
    mark, other = ("1", "2") if seat == 0 else ("2", "1")
    return "\n".join(
        [
            f"Your mark: {mark}",
            f"Boxes: you {boxes.count(mark)}, opponent {boxes.count(other)}",
            "h " + "".join(f"{column:>4}" for column in range(columns)),
            "v  " + "".join(f"{column:<4}" for column in range(columns + 1)).rstrip(),
            *(f"{'hv'[line % 2]}{line // 2} {row.rstrip()}".rstrip() for line, row in enumerate(rows)),
        ]
    )


_SIZES = (2, 3, 4, 5, 6, 7)

SPEC = GameSpec(
    name="dots_and_boxes",
    notation=(
        "P1 for Player 0 or P2 for Player 1, and the line in brackets: h or v, row, column, as P1(h,0,1)."
    ),
    rules=rules,
    describe=describe,
    params=lambda config: {"num_rows": 3 + config % 3, "num_cols": 3 + config % 3},
    variants=3,
    allowed={"num_rows": _SIZES, "num_cols": _SIZES, "utility_margin": (False, True)},
    budget=Budget(1200, 100),
    fixed_names=True,
)
