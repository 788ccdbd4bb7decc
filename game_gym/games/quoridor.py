"""Quoridor for two."""

from __future__ import annotations

from string import ascii_lowercase

from game_gym.spec import Budget, GameSpec, Params, State

# Pawns in OpenSpiel's drawing, and here.
_DRAWN = ("0", "@")
_PAWNS = ("O", "@")


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's quoridor plays with two players."""
    size = params["board_size"]
    last = ascii_lowercase[size - 1]
    before = ascii_lowercase[size - 2]
    return (
        f"Quoridor on {size} columns (a to {last}) and {size} rows (1 at the top). Player 0's pawn O "
        f"starts in the middle of row {size} and has to reach row 1; Player 1's pawn @ starts in the "
        f"middle of row 1 and has to reach row {size}. Player 0 moves first. Whoever reaches the far row "
        "first wins.\n"
        f"A turn moves the pawn or places one of one's {params['wall_count']} walls.\n"
        "Pawn: one square up, down, left or right, not through a wall. A pawn that faces the other pawn "
        "jumps over it to the square straight behind; where a wall or the edge is behind, it goes to a "
        "square at that pawn's left or right instead, if no wall is between.\n"
        f"Wall: two squares long, never removed. An action names its upper left square, a to {before} and "
        f"1 to {size - 1}: b3h lies below b3 and c3, b3v lies right of b3 and b4. Walls may not overlap or "
        "cross, and both pawns must keep a way to their goal row (pawns do not count as blocking).\n"
        "Other actions name the square the pawn goes to.\n"
        "On the board squares without a pawn are dots; | and - are walls, + the middle of a wall.\n"
        f"The game is drawn after {4 * size * size} moves in all.\n"
        "Your return is 1 for a win, 0 for a draw, -1 for a loss."
    )


def describe(state: State, seat: int) -> str:
    """Returns pawns, walls left, the board and the move count: all the rules use."""
    head, _, *rows, _ = state.observation_string(seat).rstrip("\n").split("\n")
    size = len(rows) // 2 + 1
    walls = [int(count) for count in head.partition("walls: ")[2].split(", ")]
    # A row has two characters of label, then three per square and one between squares.
    squares = [row[2 : 4 * size + 1] for row in rows]
    pawns = [_find(squares[::2], mark) for mark in _DRAWN]
    goals = (1, size)
    other = 1 - seat
    move_count = len(state.history())
    return "\n".join(
        [
            f"You: {_PAWNS[seat]} at {pawns[seat]}, goal row {goals[seat]}, walls left {walls[seat]}",
            f"Opponent: {_PAWNS[other]} at {pawns[other]}, goal row {goals[other]}, walls left "
            f"{walls[other]}",
            f"Moves made: {move_count} of {4 * size * size}",
            "   " + " ".join(ascii_lowercase[:size]),
            *(
                f"{'' if line % 2 else line // 2 + 1:>2} {_squeeze(row)}".rstrip()
                for line, row in enumerate(squares)
            ),
        ]
    )


def _find(rows: list[str], mark: str) -> str:
    for number, row in enumerate(rows, 1):
        if mark in row:
            return f"{ascii_lowercase[row.index(mark) // 4]}{number}"
    raise RuntimeError(f"quoridor's board shows no pawn {mark!r}")


def _squeeze(row: str) -> str:
    """Returns a row with one character per square and one between squares."""
    characters = "".join(row[at] + row[at + 2 : at + 3] for at in range(1, len(row), 4))
    return characters.replace(_DRAWN[0], _PAWNS[0])


SPEC = GameSpec(
    name="quoridor",
    notation=(
        "the square that the pawn goes to, as e2; or a wall by its upper left square and h or v, as b3h."
    ),
    rules=rules,
    describe=describe,
    params=lambda config: {"board_size": 7 + 2 * (config // 2 % 2), "wall_count": 8 + 2 * (config % 2)},
    variants=4,
    # Two players only: with more, a pawn without a move leaves the board.
    allowed={"board_size": (3, 5, 7, 9, 11), "wall_count": (4, 6, 8, 10, 12)},
    budget=Budget(800, 80),
)
