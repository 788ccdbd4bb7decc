"""Chess."""

from __future__ import annotations

from game_gym.spec import Budget, GameSpec, Params, State

_SIDES = ("black, small letters", "white, capital letters")


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's chess plays."""
    return (
        "Chess. Player 1 plays white (capital letters) and moves first, Player 0 plays black (small "
        "letters). K king, Q queen, R rook, B bishop, N knight, P pawn; a dot is an empty square. Squares "
        "are a file a to h and a rank 1 to 8; white starts on ranks 1 and 2.\n"
        "The usual rules of movement hold: castling, en passant, pawns promote to Q, R, B or N on the "
        "last rank, and no move may leave one's own king attacked.\n"
        "A player who cannot move has lost if the king is attacked (checkmate) and draws otherwise "
        "(stalemate).\n"
        "The game is also drawn, with no claim needed: when a position (same side to move, same castling "
        "and en passant rights) occurs for the third time; after 100 moves in a row, counting both "
        "sides', without a capture or a pawn move; and when neither side has the pieces to mate: bare "
        "kings, a king and one knight or bishop against a king, or kings with bishops that all stand on "
        "one colour.\n"
        "Actions are in standard notation: piece letter (none for pawns), file or rank of origin where "
        "needed, x for a capture, target square, =Q for promotion, + for check, # for mate; O-O castles "
        "king's side, O-O-O queen's side. The FEN tells side to move, castling rights, en passant square, "
        "moves without capture or pawn move, and the move number. Those moves themselves are listed as "
        "origin and target squares, oldest first.\n"
        "Your return is 1 for a win, 0 for a draw, -1 for a loss."
    )


def describe(state: State, seat: int) -> str:
    """Returns the board, its FEN, and the moves since the last that cannot be undone: all the rules use."""
    fen = state.observation_string(seat)
    placed, _, _, _, quiet, _ = fen.split(" ")
    since = [move.to_lan() for move in state.moves_history()[-int(quiet) :]] if int(quiet) else []
    return "\n".join(
        [
            f"You: {_SIDES[seat]}",
            *(f"{8 - row} {_spread(rank)}" for row, rank in enumerate(placed.split("/"))),
            "  a b c d e f g h",
            f"FEN: {fen}",
            f"Moves since the last capture or pawn move: {' '.join(since) or 'none'}",
            f"Times this position has occurred: {state.num_repetitions(state)}",
        ]
    )


def _spread(rank: str) -> str:
    return " ".join("".join("." * int(mark) if mark.isdigit() else mark for mark in rank))


SPEC = GameSpec(
    name="chess",
    notation="standard algebraic notation with + for check and # for mate, as e4, Nxf3+ or O-O.",
    rules=rules,
    describe=describe,
    budget=Budget(200, 20),
)
