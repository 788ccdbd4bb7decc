"""Clobber: the game plays by the rules in its text."""

from __future__ import annotations

import random

import pytest

from game_gym.games.clobber import SPEC, describe
from game_gym.spec import load_variant


def moves(board: dict[str, str], mark: str) -> set[str]:
    """Names of the moves, on cells like "a1"."""
    found = set()
    for cell, held in board.items():
        for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            other = f"{chr(ord(cell[0]) + x)}{int(cell[1:]) + y}"
            if held == mark and board.get(other, ".") not in (".", mark):
                found.add(cell + other)
    return found


@pytest.mark.parametrize(("rows", "columns"), [(5, 5), (6, 6), (7, 7), (3, 8)])
def test_the_rules_told_are_the_rules_played(rows: int, columns: int) -> None:
    game = load_variant(SPEC, {"rows": rows, "columns": columns}).game
    rng = random.Random(rows)
    for _ in range(20):
        state = game.new_initial_state()
        board = {f"{chr(97 + x)}{y + 1}": "ox"[(x + y) % 2] for x in range(columns) for y in range(rows)}
        seat = 0
        while moves(board, "ox"[seat]):
            assert state.current_player() == seat
            assert read(describe(state, seat)) == board
            legal = state.legal_actions()
            names = [state.action_to_string(seat, action) for action in legal]
            assert set(names) == moves(board, "ox"[seat]) and len(set(names)) == len(names)
            choice = rng.randrange(len(legal))
            start, end = names[choice][:2], names[choice][2:]
            board[end], board[start] = board[start], "."
            state.apply_action(legal[choice])
            seat = 1 - seat
        assert state.is_terminal()
        assert state.returns() == [1.0 - 2 * (player == seat) for player in range(2)]


def read(text: str) -> dict[str, str]:
    *rows, letters = (line.split() for line in text.split("\n")[1:])
    return {letter + row[0]: held for row in rows for letter, held in zip(letters, row[1:], strict=True)}


def test_a_description_in_full() -> None:
    state = load_variant(SPEC, {"rows": 3, "columns": 4}).game.new_initial_state()
    action = next(a for a in state.legal_actions() if state.action_to_string(0, a) == "a1b1")
    state.apply_action(action)
    assert describe(state, 1) == "Your pieces: x\n3 o x o x\n2 x o x o\n1 . o o x\n  a b c d"


def test_task_parameters() -> None:
    assert [SPEC.params(c) for c in range(4)] == [{"rows": n, "columns": n} for n in (5, 6, 7, 5)]
