"""Othello: the game plays by the rules in its text."""

from __future__ import annotations

import random

from game_gym.games.othello import SPEC, describe
from game_gym.spec import load_variant

Board = dict[tuple[int, int], str]
DIRECTIONS = [(x, y) for x in (-1, 0, 1) for y in (-1, 0, 1) if x or y]


def turned(board: Board, cell: tuple[int, int], mark: str) -> list[tuple[int, int]]:
    """The discs that ``mark`` on ``cell`` would enclose."""
    found = []
    for right, down in DIRECTIONS:
        line = []
        at = (cell[0] + right, cell[1] + down)
        while board.get(at, ".") not in (".", mark):
            line.append(at)
            at = (at[0] + right, at[1] + down)
        if board.get(at) == mark:
            found += line
    return found


def moves(board: Board, mark: str) -> list[tuple[int, int]]:
    return [cell for cell, held in board.items() if held == "." and turned(board, cell, mark)]


def read(text: str) -> Board:
    rows = [line.split()[1:] for line in text.split("\n")[2:10]]
    return {(x, y): rows[y][x] for y in range(8) for x in range(8)}


def test_the_rules_told_are_the_rules_played() -> None:
    game = load_variant(SPEC, {}).game
    rng = random.Random(0)
    for _ in range(20):
        state = game.new_initial_state()
        board = {(x, y): "." for y in range(8) for x in range(8)}
        board |= {(3, 3): "o", (4, 4): "o", (4, 3): "x", (3, 4): "x"}
        seat = 0
        while moves(board, "x") or moves(board, "o"):
            mark = "xo"[seat]
            assert state.current_player() == seat
            text = describe(state, seat)
            assert read(text) == board
            held = list(board.values())
            assert text.endswith(f"Count: x {held.count('x')}, o {held.count('o')}")
            legal = state.legal_actions()
            names = [f"{'abcdefgh'[x]}{y + 1}" for x, y in moves(board, mark)]
            assert [state.action_to_string(seat, action) for action in legal] == (names or ["pass"])
            choice = rng.randrange(len(legal))
            if names:
                cell = moves(board, mark)[choice]
                for changed in [cell, *turned(board, cell, mark)]:
                    board[changed] = mark
            state.apply_action(legal[choice])
            seat = 1 - seat
        lead = list(board.values()).count("x") - list(board.values()).count("o")
        assert state.is_terminal()
        assert state.returns()[0] == (lead > 0) - (lead < 0)


def test_a_description_in_full() -> None:
    state = load_variant(SPEC, {}).game.new_initial_state()
    state.apply_action(19)  # d3, which turns d4
    assert describe(state, 1) == (
        "Your discs: o\n  a b c d e f g h\n1 . . . . . . . .\n2 . . . . . . . .\n3 . . . x . . . .\n"
        "4 . . . x x . . .\n5 . . . x o . . .\n6 . . . . . . . .\n7 . . . . . . . .\n8 . . . . . . . .\n"
        "Count: x 4, o 1"
    )
