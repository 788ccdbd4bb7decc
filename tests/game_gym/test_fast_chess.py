"""Compiled rules of chess beside OpenSpiel's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyspiel
import pytest

pytest.importorskip("numba")

from game_gym.games.chess import SPEC
from game_gym.opponents.fast import chess
from game_gym.opponents.fast.rules import ENDED, list_legal
from tests.game_gym.fast_rules import check_draws, check_game

pytestmark = pytest.mark.numba

GAME = pyspiel.load_game("chess", SPEC.params({}))

CASTLING = "r3k2r/8/8/8/8/8/8/R3K2R w KQkq - 0 1"
PROMOTION = "1n1n3k/P1P1P3/8/8/8/8/p1p1p3/1N1N3K w - - 0 1"
EN_PASSANT = "4k3/8/8/2pPp3/8/8/8/4K3 w - c6 0 2"
PINNED_EN_PASSANT = "8/8/8/KPp4r/8/8/8/4k3 w - c6 0 2"
CHECK_BY_PASSED_PAWN = "8/8/8/2Pp4/4K3/8/8/4k3 w - d6 0 2"
DOUBLE_CHECK = "4r2k/8/8/8/8/3n4/3P1P2/R3KB2 w - - 0 1"
PINS = "4r2k/8/8/b7/4N3/2P5/8/q2QK3 w - - 0 1"
MOST_MOVES = "R6R/3Q4/1Q4Q1/4Q3/2Q4Q/Q4Q2/pp1Q4/kBNN1KB1 w - - 0 1"
POSITIONS = (
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
    PINNED_EN_PASSANT,
    CHECK_BY_PASSED_PAWN,
    DOUBLE_CHECK,
    PINS,
    MOST_MOVES,
    "2b1k3/8/8/8/8/8/8/2B1KN2 w - - 80 60",
    "8/8/4k3/8/8/4K3/8/QQ6 b - - 0 1",
)


class StartsAt:
    """A game whose initial state is a given position."""

    def __init__(self, fen: str) -> None:
        self._fen = fen

    def new_initial_state(self) -> Any:
        return GAME.new_initial_state(self._fen)


def play(moves: str, fen: str = "") -> tuple[Any, Any]:
    """Makes moves by both rules; returns both states."""
    state = GAME.new_initial_state(fen) if fen else GAME.new_initial_state()
    compiled = chess.read(state)
    for move in moves.split():
        assert int(chess.player(compiled)) == state.current_player() != ENDED, move
        assert list_legal(chess, compiled) == state.legal_actions()
        action = state.parse_move_to_action(move)
        assert action in state.legal_actions(), move
        state.apply_action(action)
        chess.apply(compiled, action)
        assert np.array_equal(compiled, chess.read(state)), move
    return state, compiled


def is_over(state: Any, compiled: Any, first_return: float) -> bool:
    """Returns whether both rules end the game with the first seat's return."""
    ended = state.is_terminal(), int(chess.player(compiled)) == ENDED
    assert ended[0] == ended[1]
    if not ended[0]:
        return False
    assert state.returns()[0] == chess.result(compiled) == first_return
    assert list_legal(chess, compiled) == []
    return True


@pytest.mark.parametrize("seed", range(12))
def test_random_games_are_openspiels(seed: int) -> None:
    assert check_game(chess, GAME, seed) > 0


@pytest.mark.parametrize("fen", POSITIONS)
def test_games_and_draws_from_positions_are_openspiels(fen: str) -> None:
    for seed in range(3):
        check_game(chess, StartsAt(fen), seed)
    check_draws(chess, GAME.new_initial_state(fen))


def test_draws_are_uniform_at_the_opening_and_in_check() -> None:
    check_draws(chess, GAME.new_initial_state())
    check_draws(chess, play("e2e4 f7f6 d1h5")[0])


def test_no_position_has_more_actions_than_the_limit() -> None:
    compiled = chess.read(GAME.new_initial_state(MOST_MOVES))
    assert len(list_legal(chess, compiled)) == chess.ACTIONS == 218


@pytest.mark.parametrize(
    ("moves", "fen", "first_return"),
    [
        ("f2f3 e7e5 g2g4 d8h4", "", 1.0),
        ("e2e4 e7e5 d1h5 b8c6 f1c4 g8f6 h5f7", "", -1.0),
        ("e1g1", "4rkr1/4p1p1/8/8/8/8/8/4K2R w K - 0 1", -1.0),  # castling gives mate
    ],
)
def test_mate_wins(moves: str, fen: str, first_return: float) -> None:
    assert is_over(*play(moves, fen), first_return)


def test_a_mover_without_moves_who_is_not_in_check_draws() -> None:
    assert is_over(*play("g5g6", "7k/8/8/5KQ1/8/8/8/8 w - - 0 1"), 0.0)
    assert is_over(*play("d6e6", "4k3/4P3/3K4/8/8/8/8/8 w - - 0 1"), 0.0)


SHUFFLE = "g1f3 g8f6 f3g1 f6g8 "


def test_the_third_occurrence_of_a_position_draws() -> None:
    assert not is_over(*play(SHUFFLE + "g1f3 g8f6 f3g1"), 0.0)
    assert is_over(*play(2 * SHUFFLE), 0.0)
    # The position after 1. e4 counts from then on.
    assert is_over(*play("e2e4 " + 2 * "g8f6 g1f3 f6g8 f3g1 "), 0.0)


def test_positions_differ_by_rights_to_castle() -> None:
    moves = "h1g1 h8g8 g1h1 g8h8 "
    assert not is_over(*play(2 * moves, CASTLING), 0.0)  # only the second time without the rights
    assert is_over(*play(2 * moves + "h1g1 h8g8", CASTLING), 0.0)
    # Without the rights it ends a move earlier.
    assert is_over(*play(2 * moves, CASTLING.replace("KQkq", "-")), 0.0)


def test_positions_differ_by_the_pawn_that_can_be_captured_en_passant() -> None:
    shuffle = "e1e2 e8e7 e2e1 e7e8 "
    assert not is_over(*play(2 * shuffle, EN_PASSANT), 0.0)
    assert is_over(*play(2 * shuffle + "e1e2", EN_PASSANT), 0.0)
    assert is_over(*play(2 * shuffle, EN_PASSANT.replace("c6", "-")), 0.0)


def test_a_hundred_quiet_moves_draw() -> None:
    fen = "4k3/8/8/8/8/8/7P/R3K3 w - - 98 90"
    assert not is_over(*play("a1a2", fen), 0.0)
    assert is_over(*play("a1a2 e8d8", fen), 0.0)
    assert not is_over(*play("h2h3 e8d8", fen), 0.0)  # a pawn move
    assert not is_over(*play("a1a2 e8d8", fen.replace("98", "97")), 0.0)


def test_mate_at_the_hundredth_quiet_move_wins() -> None:
    assert is_over(*play("a1a8", "6k1/5ppp/8/8/8/8/8/R3K3 w - - 99 90"), -1.0)


def test_long_games_without_progress_end_at_a_hundred_moves() -> None:
    """Two knights walk paths of 10 and 9 squares, so no position occurs a third time before."""
    fen = "7k/8/8/8/8/p7/P7/R6K w - - 0 1"
    state = GAME.new_initial_state(fen)
    compiled, moves, generator = chess.read(state), 0, np.random.default_rng(3)
    while not state.is_terminal():
        counts = []
        for action in state.legal_actions():
            later = state.child(action)
            quiet = int(str(later).split(" ")[4]) > 0
            counts.append((later.is_terminal() or not quiet, generator.random(), action))
        action = min(counts)[2]
        state.apply_action(action)
        chess.apply(compiled, action)
        assert np.array_equal(compiled, chess.read(state))
        moves += 1
    assert moves == 100 and not state.is_repetition_draw()
    assert is_over(state, compiled, 0.0)


@pytest.mark.parametrize(
    ("rest", "draws"),
    [
        ("", True),
        ("B", True),
        ("n", True),
        ("bB", False),  # on squares of two colours
        ("b.B", True),  # on squares of one colour
        ("B.B.b", True),
        ("BB", False),
        ("NN", False),
        ("Nn", False),
        ("Bn", False),
        ("R", False),
        ("Q", False),
    ],
)
def test_too_little_material_draws(rest: str, draws: bool) -> None:
    row = rest.replace(".", "1")
    left = 8 - sum(int(mark) if mark.isdigit() else 1 for mark in row)
    fen = f"k7/8/8/8/{left}{row}/8/1p6/K7 w - - 0 1"
    assert is_over(*play("a1b2", fen), 0.0) == draws


def test_a_promotion_to_a_bishop_can_end_the_game() -> None:
    fen = "8/4P3/8/8/8/8/k7/7K w - - 0 1"
    assert is_over(*play("e7e8b", fen), 0.0) and not is_over(*play("e7e8q", fen), 0.0)


def test_other_games_and_positions_are_refused() -> None:
    other = pyspiel.load_game("chess(chess960=true)")
    state = other.new_initial_state()
    state.apply_action(0)
    with pytest.raises(ValueError, match="chess960=False"):
        chess.read(state)
    for fen in (
        "4k3/8/8/8/8/8/8/QQQQQQQQ w - - 0 1",  # no king
        "4k3/8/8/8/8/8/QQQQQQQQ/KQQ5 w - - 0 1",  # more queens than pawns could become
        "4k3/8/8/8/8/8/8/1R2K3 w Q - 0 1",  # castling with a rook that is in no corner
        "4k2R/8/8/8/8/8/8/4K3 w - - 0 1",  # the king can be captured
        "P3k3/8/8/8/8/8/8/4K3 w - - 0 1",
    ):
        with pytest.raises(ValueError, match="no game of standard chess reaches"):
            chess.read(GAME.new_initial_state(fen))
