"""Compiled rules beside OpenSpiel's: chess, checkers and othello."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pyspiel
import pytest

pytest.importorskip("numba")

from game_gym.games import DECLARED
from game_gym.opponents.fast import checkers, chess, othello
from tests.game_gym.fast_rules import check_draws, check_game, follow, list_legal
from tests.game_gym.play import load, reach

pytestmark = pytest.mark.numba

# -- othello -------------------------------------------------------------------------------------------------


OTHELLO = pyspiel.load_game("othello")


@pytest.mark.parametrize("seed", range(30))
def test_games_of_othello(seed: int) -> None:
    assert check_game(othello, OTHELLO, seed) >= 9  # the shortest game of othello


def test_draws_of_othello() -> None:
    check_draws(othello, OTHELLO.new_initial_state())
    check_draws(othello, reach(load("othello"), [19, 18, 17, 9, 1, 0]))


def test_a_game_ends_when_a_colour_is_wiped_out() -> None:
    """The shortest such game."""
    moves = ["e6", "f4", "e3", "f6", "g5", "d6", "e7", "f5", "c5"]
    left = iter(moves)
    assert check_game(othello, OTHELLO, 0, lambda state, _: state.string_to_action(next(left))) == 9
    assert reach(load("othello"), moves).returns()[0] == 1.0


# -- checkers ------------------------------------------------------------------------------------------------


SIZES = list(product(DECLARED["checkers"].allowed["rows"], DECLARED["checkers"].allowed["columns"]))

# On 8 rows and 6 columns: first a game of 47 moves, the last of which is a capture.
CAPTURES = (
    "a3b4 b6a5 b4c5 d6b4 e3d4 b4a3 d4e5 f6d4 c3e5 e7f6 e5d6 c7e5 b2c3 d8e7 c3b4 a5c3 d2b4 e5f4 f2e3 f4d2 "
    "c1e3 a7b6 e1f2 b8a7 e3d4 e7d6 d4e5 f6d4 f2e3 d4f2 b4a5 f8e7 a5c7 a7b6 a1b2 a3c1 c7b8 b6a5 b8c7 a5b4 "
    "c7e5 c1d2 e5d4 d2e1 d4c5 e7f6 c5a3 "
)
# Then both sides' kings move there and back as often as one likes, before the first seat shuts in the second.
REPETITION = "e1d2 a3b4 d2e1 b4a3 "
BLOCK = "f6e5 a3b4 e5d4 b4a3 d4e3 a3b2 e1d2 b2a1 d2e1 a1b2 e3d2 b2c1"


def make_game(rows: int = 8, columns: int = 6) -> Any:
    return pyspiel.load_game("checkers", {"rows": rows, "columns": columns})


def play_checkers(moves: str) -> tuple[Any, Any]:
    """Plays moves on 8 rows and 6 columns; returns OpenSpiel's state and the compiled one."""
    return follow(
        checkers, make_game().new_initial_state(), moves, lambda state, move: state.string_to_action(move)
    )


@pytest.mark.parametrize(("rows", "columns"), SIZES)
def test_games_of_checkers(rows: int, columns: int) -> None:
    game = make_game(rows, columns)
    for seed in range(20):
        assert check_game(checkers, game, seed) > 10


def test_drawn_actions_are_uniform() -> None:
    for rows, columns in ((8, 8), (12, 6)):
        generator, state = random.Random(2), make_game(rows, columns).new_initial_state()
        for ply in range(60):
            if ply in (0, 15, 30, 45):
                check_draws(checkers, state)
            state.apply_action(generator.choice(state.legal_actions()))
    state, compiled = play_checkers(CAPTURES + "e1d2 a3b4")  # kings
    names = {state.action_to_string(action) for action in list_legal(checkers, compiled)}
    assert {"d2c1", "d2e1", "d2c3", "d2e3"} < names
    check_draws(checkers, state)


@pytest.mark.parametrize(
    ("moves", "first_return"),
    [
        # Forty moves without a capture draw.
        (CAPTURES + 9 * REPETITION + "e1d2 a3b4 d2e1", None),
        (CAPTURES + 10 * REPETITION, 0),
        # A draw comes before a loss.
        (CAPTURES + 6 * REPETITION + BLOCK, 1),
        (CAPTURES + 7 * REPETITION + BLOCK, 0),
    ],
)
def test_ends_of_checkers(moves: str, first_return: float | None) -> None:
    state, _ = play_checkers(moves)
    assert (state.returns()[0] if state.is_terminal() else None) == first_return


# -- chess ---------------------------------------------------------------------------------------------------


CHESS = pyspiel.load_game("chess", DECLARED["chess"].params(0))

CASTLING = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"
PROMOTION = "1n1n3k/P1P1P3/8/8/8/8/p1p1p3/1N1N3K w - - 0 1"
EN_PASSANT = "4k3/8/8/2pPp3/8/8/8/4K3 w - c6 0 2"
MOST_MOVES = "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1"
POSITIONS = (
    "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1",
    "rnbqkbnr/ppppp1pp/5p2/7Q/4P3/8/PPPP1PPP/RNB1KBNR b KQkq - 1 2",  # a check
    CASTLING,
    CASTLING.replace(" w ", " b "),
    "rn2k2r/8/8/8/8/6n1/8/R3K2R w KQkq - 0 1",  # a square that the king crosses is attacked
    "1r2k3/8/8/8/8/8/8/R3K3 w Q - 0 1",  # a square that only the rook crosses is attacked
    "r3k2r/7B/8/8/8/8/6p1/R3K2R w KQkq - 0 1",
    "r3k2r/1P4P1/8/8/8/8/1p4p1/R3K2R b KQkq - 0 1",  # rooks are captured in their corners
    PROMOTION,
    PROMOTION.replace(" w ", " b "),
    EN_PASSANT,
    "4k3/8/8/8/2pPp3/8/8/4K3 b - d3 0 2",
    "8/8/8/KPp4r/8/8/8/4k3 w - c6 0 2",  # a pawn that may not capture en passant, as it is pinned
    "8/8/8/2Pp4/4K3/8/8/4k3 w - d6 0 2",  # a check by the pawn that passed
    "4r2k/8/8/8/8/3n4/3P1P2/R3KB2 w - - 0 1",  # a double check
    "4r2k/8/8/b7/4N3/2P5/8/q2QK3 w - - 0 1",  # pins
    MOST_MOVES,
    "2b1k3/8/8/8/8/8/8/2B1KN2 w - - 80 60",
    "8/8/4k3/8/8/4K3/8/QQ6 b - - 0 1",
)


class StartsAt:
    """A game whose initial state is a given position."""

    def __init__(self, fen: str) -> None:
        self._fen = fen

    def new_initial_state(self) -> Any:
        return CHESS.new_initial_state(self._fen)


@pytest.mark.parametrize("seed", range(12))
def test_games_of_chess(seed: int) -> None:
    assert check_game(chess, CHESS, seed) > 0


@pytest.mark.parametrize("fen", POSITIONS)
def test_games_and_draws_from_positions_are_openspiels(fen: str) -> None:
    for seed in range(3):
        check_game(chess, StartsAt(fen), seed)
    check_draws(chess, CHESS.new_initial_state(fen))


SHUFFLE = "g1f3 g8f6 f3g1 f6g8 "
ROOKS = "h1g1 h8g8 g1h1 g8h8 "
KINGS = "e1e2 e8e7 e2e1 e7e8 "
QUIET = "4k3/8/8/8/8/8/7P/R3K3 w - - 98 90"
BISHOP = "8/4P3/8/8/8/8/k7/7K w - - 0 1"

# Moves, the position that they begin from, and the return of the first seat, or None if the game goes on.
ENDS = [
    # Mate wins; in the third case castling gives it.
    ("f2f3 e7e5 g2g4 d8h4", "", 1.0),
    ("e2e4 e7e5 d1h5 b8c6 f1c4 g8f6 h5f7", "", -1.0),
    ("e1g1", "4rkr1/4p1p1/8/8/8/8/8/4K2R w K - 0 1", -1.0),
    # A mover without moves who is not in check draws.
    ("g5g6", "7k/8/8/5KQ1/8/8/8/8 w - - 0 1", 0.0),
    ("d6e6", "4k3/4P3/3K4/8/8/8/8/8 w - - 0 1", 0.0),
    # The third occurrence of a position draws; the position after 1. e4 counts from then on.
    (SHUFFLE + "g1f3 g8f6 f3g1", "", None),
    (2 * SHUFFLE, "", 0.0),
    ("e2e4 " + 2 * "g8f6 g1f3 f6g8 f3g1 ", "", 0.0),
    # Positions differ by rights to castle: without the rights it ends a move earlier.
    (2 * ROOKS, CASTLING, None),
    (2 * ROOKS + "h1g1 h8g8", CASTLING, 0.0),
    (2 * ROOKS, CASTLING.replace("KQkq", "-"), 0.0),
    # Positions differ by the pawn that can be captured en passant.
    (2 * KINGS, EN_PASSANT, None),
    (2 * KINGS + "e1e2", EN_PASSANT, 0.0),
    (2 * KINGS, EN_PASSANT.replace("c6", "-"), 0.0),
    # A hundred quiet moves draw; a pawn move starts the count again, and mate at the hundredth wins.
    ("a1a2", QUIET, None),
    ("a1a2 e8d8", QUIET, 0.0),
    ("h2h3 e8d8", QUIET, None),
    ("a1a2 e8d8", QUIET.replace("98", "97"), None),
    ("a1a8", "6k1/5ppp/8/8/8/8/8/R3K3 w - - 99 90", -1.0),
    # A promotion to a bishop can end the game.
    ("e7e8b", BISHOP, 0.0),
    ("e7e8q", BISHOP, None),
]


@pytest.mark.parametrize(("moves", "fen", "first_return"), ENDS)
def test_ends_of_chess(moves: str, fen: str, first_return: float | None) -> None:
    """Moves are made by both rules; what is looked at is OpenSpiel's state."""
    state = CHESS.new_initial_state(fen) if fen else CHESS.new_initial_state()
    state = follow(chess, state, moves, lambda state, move: state.parse_move_to_action(move))[0]
    assert (state.returns()[0] if state.is_terminal() else None) == first_return
