"""Chess: words against the game."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from game_gym.games import find_game
from game_gym.games.chess import describe
from game_gym.spec import load_variant

GAME = load_variant(find_game("chess"), {}).game


def play(moves: str) -> Any:
    """A position after moves in standard notation."""
    state = GAME.new_initial_state()
    for move in moves.split():
        legal = {state.action_to_string(action): action for action in state.legal_actions()}
        state.apply_action(legal[move])
    return state


def test_player_1_is_white_and_moves_first() -> None:
    assert play("").current_player() == 1
    assert play("e4").current_player() == 0


def test_the_moves_listed_lead_to_every_position_that_can_come_again() -> None:
    rng = random.Random(0)
    for _ in range(4):
        state, since, seen = GAME.new_initial_state(), [], Counter[str]()
        while not state.is_terminal():
            fen = str(state).rsplit(" ", 2)
            seen[fen[0]] += 1
            lines = describe(state, state.current_player()).split("\n")
            side, *board, files, shown, quiet, times = lines
            assert side.startswith(("You: black", "You: white")[state.current_player()])
            assert shown == f"FEN: {state}"
            assert quiet == f"Moves since the last capture or pawn move: {' '.join(since) or 'none'}"
            assert len(since) == int(fen[1])
            assert times == f"Times this position has occurred: {seen[fen[0]]}"
            rows = [row.split() for row in board]
            assert [row[0] for row in rows] == list("87654321")
            placed = "/".join("".join(row[1:]) for row in rows)
            for run in range(8, 0, -1):
                placed = placed.replace("." * run, str(run))
            assert placed == fen[0].split(" ")[0]
            assert files.split() == list("abcdefgh")
            action = rng.choice(state.legal_actions())
            name = state.action_to_string(action)
            state.apply_action(action)
            last = state.moves_history()[-1].to_lan()
            since = [] if "x" in name or name[0] in "abcdefgh" else [*since, last]


def test_a_description_in_full() -> None:
    assert describe(play("e4 e5 Nf3 Nf6 Ng1 Ng8"), 1) == (
        "You: white, capital letters\n"
        "8 r n b q k b n r\n"
        "7 p p p p . p p p\n"
        "6 . . . . . . . .\n"
        "5 . . . . p . . .\n"
        "4 . . . . P . . .\n"
        "3 . . . . . . . .\n"
        "2 P P P P . P P P\n"
        "1 R N B Q K B N R\n"
        "  a b c d e f g h\n"
        "FEN: rnbqkbnr/pppp1ppp/8/4p3/4P3/8/PPPP1PPP/RNBQKBNR w KQkq - 4 4\n"
        "Moves since the last capture or pawn move: g1f3 g8f6 f3g1 f6g8\n"
        "Times this position has occurred: 2"
    )
