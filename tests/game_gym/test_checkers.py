"""Checkers: the game plays by the rules in its text."""

from __future__ import annotations

import random

import pytest

from game_gym.games import find_game
from game_gym.games.checkers import describe
from game_gym.spec import load_variant

Square = tuple[int, int]


class Checkers:
    """The rules text, played: an implementation of its own. Squares are (column, row), both from 0."""

    def __init__(self, rows: int, columns: int) -> None:
        self.rows, self.columns = rows, columns
        dark = [(c, r) for r in range(rows) for c in range(columns) if (rows - 1 - r + c) % 2]
        self.men = {square: "o" for square in dark if square[1] < 3}
        self.men |= {square: "x" for square in dark if square[1] >= rows - 3}
        self.mover, self.quiet = 0, 0
        self.jumper: Square | None = None

    def steps(self, square: Square) -> list[tuple[Square, Square]]:
        """(next square, the one behind it) in each direction this piece may go."""
        mark = self.men[square]
        ups = {"o": [1], "x": [-1]}.get(mark, [1, -1])
        return [
            ((square[0] + dc, square[1] + up), (square[0] + 2 * dc, square[1] + 2 * up))
            for up in ups
            for dc in (-1, 1)
        ]

    def free(self, square: Square) -> bool:
        return square not in self.men and 0 <= square[0] < self.columns and 0 <= square[1] < self.rows

    def moves(self) -> set[tuple[Square, Square]]:
        own, enemy = ("oO", "xX") if self.mover == 0 else ("xX", "oO")
        mine = [square for square, mark in self.men.items() if mark in own]
        jumps = {
            (square, behind)
            for square in mine
            for over, behind in self.steps(square)
            if self.men.get(over, ".") in enemy and self.free(behind)
        }
        if self.quiet >= 40:
            return set()
        if jumps:
            return {jump for jump in jumps if self.jumper in (None, jump[0])}
        return {(square, beside) for square in mine for beside, _ in self.steps(square) if self.free(beside)}

    def act(self, start: Square, end: Square) -> None:
        mark = self.men.pop(start)
        far = self.rows - 1 if mark == "o" else 0
        crowned = mark in "ox" and end[1] == far
        self.men[end] = mark.upper() if crowned else mark
        self.quiet, self.jumper = self.quiet + 1, None
        if abs(start[0] - end[0]) == 2:
            self.quiet = 0
            del self.men[(start[0] + end[0]) // 2, (start[1] + end[1]) // 2]
            if not crowned and any(s == end and abs(s[0] - e[0]) == 2 for s, e in self.moves()):
                self.jumper = end
        if self.jumper is None:
            self.mover = 1 - self.mover


def name(square: Square) -> str:
    return f"{chr(ord('a') + square[0])}{square[1] + 1}"


@pytest.mark.parametrize(("rows", "columns"), [(8, 8), (12, 8), (8, 6), (10, 6)])
def test_the_rules_told_are_the_rules_played(rows: int, columns: int) -> None:
    game = load_variant(find_game("checkers"), {"rows": rows, "columns": columns}).game
    rng, ends, jumpers = random.Random(rows), set(), 0
    for _ in range(25):
        state, ours = game.new_initial_state(), Checkers(rows, columns)
        while not state.is_terminal():
            seat = state.current_player()
            assert seat == ours.mover
            names = {state.action_to_string(seat, action): action for action in state.legal_actions()}
            moves = {name(start) + name(end): (start, end) for start, end in ours.moves()}
            assert set(names) == set(moves)
            check_words(describe(state, seat), ours)
            jumpers += ours.jumper is not None
            chosen = rng.choice(sorted(names))
            state.apply_action(names[chosen])
            ours.act(*moves[chosen])
        assert not ours.moves()
        value = 0 if ours.quiet >= 40 else (1 if ours.mover == 1 else -1)
        assert state.returns() == [value, -value]
        ends.add(value)
    assert jumpers > 5
    assert len(ends) > 1


def check_words(text: str, ours: Checkers) -> None:
    side, *board, files, quiet, jumper = text.split("\n")
    assert side.startswith(("You: o", "You: x")[ours.mover])
    assert files.split() == [chr(ord("a") + column) for column in range(ours.columns)]
    for line in board:
        label, *marks = line.split()
        row = int(label) - 1
        assert marks == [ours.men.get((column, row), ".") for column in range(ours.columns)]
        assert [line[files.index(chr(ord("a") + c))] for c in range(ours.columns)] == marks
    assert quiet == f"Moves without a capture: {ours.quiet} of 40"
    assert jumper == f"Must go on capturing from: {name(ours.jumper) if ours.jumper else 'none'}"


def test_a_description_in_full() -> None:
    # The man on d6 takes e5 and lands on f4; from f6, which would have another way, the man has left.
    state = load_variant(find_game("checkers"), {}).game.new_initial_state()
    for move in ("c3d4", "f6g5", "d4e5"):
        state.apply_action(state.string_to_action(move))
    assert [state.action_to_string(1, action) for action in state.legal_actions()] == ["d6f4"]
    assert describe(state, 1) == (
        "You: x (kings X), moving down\n"
        "8 . x . x . x . x\n"
        "7 x . x . x . x .\n"
        "6 . x . x . . . x\n"
        "5 . . . . o . x .\n"
        "4 . . . . . . . .\n"
        "3 o . . . o . o .\n"
        "2 . o . o . o . o\n"
        "1 o . o . o . o .\n"
        "  a b c d e f g h\n"
        "Moves without a capture: 3 of 40\n"
        "Must go on capturing from: none"
    )
