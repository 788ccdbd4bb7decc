"""Go on small and large boards, scored by area."""

from __future__ import annotations

from game_gym.spec import Budget, GameSpec, Params, State

_SIDES = ("black, X", "white, O")


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's go plays."""
    size = params["board_size"]
    return (
        f"Go on a board of {size} by {size} points. Player 0 plays black (X) and moves first, Player 1 "
        "plays white (O); empty points are dots. A turn places one stone on an empty point, or passes.\n"
        "Stones of one colour that touch along lines form a chain; the empty points next to it are its "
        "liberties. After a move, enemy chains without liberties are taken off the board. A move that "
        "leaves one's own chain without liberties (suicide) is not allowed, nor is retaking at once a "
        "single stone that just took a single stone (ko).\n"
        "A move that makes the whole board the same as after any earlier move, or as at the start, is "
        "allowed but ends the game at once as a draw; such moves are listed as repeating.\n"
        f"The game also ends after two passes in a row, or after {params['max_game_length']} moves in all, "
        "passes included. Then every stone left on the board counts 1 for its colour, and so does every "
        "empty point whose region touches that colour only (no stones are removed as dead). White adds "
        f"{params['komi']:g}. The higher total wins.\n"
        "An action is the colour's letter (B or W) and a point or PASS; points are a column letter (I is "
        "skipped) and a row number, as on the board's edges.\n"
        "Your return is 1 for a win, 0 for a draw, -1 for a loss."
    )


def describe(state: State, seat: int) -> str:
    """Returns the board, the moves that led to it, and which moves repeat a position: all the rules use."""
    rows = state.observation_string(seat).split("\n\n")[1].rstrip("\n").split("\n")
    board = [*map(_spread, rows[:-1]), _spread(rows[-1].lower())]
    moves = [
        state.action_to_string(move.player, move.action).partition(" ")[2] for move in state.full_history()
    ]
    stones = sum(row.count("X") + row.count("O") for row in board[:-1])
    # Without a capture, every move adds a stone, and no position comes again.
    captured = stones < len(moves) - moves.count("PASS")
    repeating = _repeating(state) if captured else []
    limit = state.get_game().max_game_length()
    return "\n".join(
        [
            f"You: {_SIDES[seat]}",
            *board,
            f"Moves ({len(moves)} of {limit}, black first): {' '.join(moves) or 'none'}",
            f"Repeating: {' '.join(repeating) or 'none'}",
        ]
    )


def _spread(row: str) -> str:
    """Returns a board row as "10 . X O", the last one as "   a b c", in the letters of the actions."""
    head, points = row[:3], row[3:].replace("+", ".")
    return f"{head}{' '.join(points)}"


def _repeating(state: State) -> list[str]:
    """Returns the moves that would end the game as a draw: totals differ by half a point at least."""
    seat = state.current_player()
    moves = []
    for action in state.legal_actions()[:-1]:
        child = state.child(action)
        if child.is_terminal() and child.returns() == [0.0, 0.0]:
            moves.append(state.action_to_string(seat, action).partition(" ")[2])
    return moves


SPEC = GameSpec(
    name="go",
    notation="B or W and the point, as B d4; or B PASS.",
    rules=rules,
    describe=describe,
    params=lambda config: {"board_size": 5 + 2 * (config % 2), "komi": 7.5},
    variants=2,
    # Half points only: a draw is a repetition.
    allowed={"board_size": (5, 7, 9, 13, 19), "komi": (0.5, 5.5, 6.5, 7.5)},
    budget=Budget(300, 30),
)
