"""Amazons: the game plays by the rules in its text."""

from __future__ import annotations

import random

import pytest

from game_gym.games import find_game
from game_gym.games.amazons import describe
from game_gym.spec import load_variant


def reach(board: list[list[str]], row: int, column: int) -> list[tuple[int, int]]:
    """Cells a queen on (row, column) goes to, counted from 0."""
    size, cells = len(board), []
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            r, c = row + down, column + right
            while (down or right) and 0 <= r < size and 0 <= c < size and board[r][c] == ".":
                cells.append((r, c))
                r, c = r + down, c + right
    return sorted(cells)


@pytest.mark.parametrize("size", [6, 8, 10])
def test_the_rules_told_are_the_rules_played(size: int) -> None:
    game = load_variant(find_game("amazons"), {"board_size": size}).game
    rng = random.Random(size)
    for _ in range(3):
        state, held = game.new_initial_state(), (0, 0)
        while not state.is_terminal():
            seat, step = state.current_player(), len(state.history()) % 3
            lines = describe(state, seat).split("\n")
            board = [list(line) for line in lines[3:]]
            mine = [(r, c) for r in range(size) for c in range(size) if board[r][c] == "XO"[seat]]
            assert lines[0] == f"Your amazons: {'XO'[seat]}" and lines[2] == "Board:"
            assert len(mine) == (3 if step == 1 else 4)
            if step == 0:
                assert lines[1] == "Now: choose an amazon"
                cells = [cell for cell in mine if reach(board, *cell)]
            else:
                cell = f"({held[0] + 1}, {held[1] + 1})"
                assert lines[1] == (f"Now: move the amazon from {cell}", f"Now: shoot from {cell}")[step - 1]
                cells = reach(board, *held)
            assert [divmod(action, size) for action in state.legal_actions()] == cells
            names = [state.action_to_string(seat, action) for action in state.legal_actions()]
            assert all(f"({r + 1}, {c + 1})" in name for name, (r, c) in zip(names, cells, strict=True))
            action = rng.choice(state.legal_actions())
            held = divmod(action, size)
            state.apply_action(action)
        loser = (len(state.history()) // 3) % 2  # who would begin the next turn
        assert state.returns()[loser] == -1 and sum(state.returns()) == 0


def test_a_description_in_full() -> None:
    state = load_variant(find_game("amazons"), {"board_size": 6}).game.new_initial_state()
    board = ".O..O.\nO....O\n......\n......\nX....X\n.X..X."
    assert describe(state, 0) == f"Your amazons: X\nNow: choose an amazon\nBoard:\n{board}"
    state.apply_action(24)
    assert describe(state, 0) == (
        f"Your amazons: X\nNow: move the amazon from (5, 1)\nBoard:\n{board.replace('X....X', '.....X')}"
    )
