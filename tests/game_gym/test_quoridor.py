"""Quoridor: the game plays by the rules in its text."""

from __future__ import annotations

import random

import pytest

from game_gym.games import find_game
from game_gym.games.quoridor import SPEC, describe, rules
from game_gym.spec import load_variant

Square = tuple[int, int]


class Quoridor:
    """The rules text, played: an implementation of its own. Squares are (column, row), both from 0."""

    def __init__(self, size: int, walls: int) -> None:
        self.size, self.left = size, [walls, walls]
        self.pawns = [(size // 2, size - 1), (size // 2, 0)]
        self.walls: set[str] = set()
        self.blocked: set[frozenset[Square]] = set()
        self.mover, self.made = 0, 0

    def open(self, start: Square, end: Square) -> bool:
        inside = 0 <= end[0] < self.size and 0 <= end[1] < self.size
        return inside and frozenset((start, end)) not in self.blocked

    def steps(self) -> set[Square]:
        (x, y), other = self.pawns[self.mover], self.pawns[1 - self.mover]
        found = set()
        for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            beside = (x + dx, y + dy)
            if not self.open((x, y), beside):
                continue
            if beside != other:
                found.add(beside)
                continue
            behind = (x + 2 * dx, y + 2 * dy)
            sides = [(beside[0] + dy, beside[1] + dx), (beside[0] - dy, beside[1] - dx)]
            found |= {behind} if self.open(beside, behind) else {s for s in sides if self.open(beside, s)}
        return found

    def cuts(self, wall: str) -> set[frozenset[Square]]:
        x, y = ord(wall[0]) - ord("a"), int(wall[1:-1]) - 1
        if wall[-1] == "h":
            return {frozenset(((x, y), (x, y + 1))), frozenset(((x + 1, y), (x + 1, y + 1)))}
        return {frozenset(((x, y), (x + 1, y))), frozenset(((x, y + 1), (x + 1, y + 1)))}

    def reaches(self, seat: int) -> bool:
        seen, edge = {self.pawns[seat]}, [self.pawns[seat]]
        while edge:
            x, y = edge.pop()
            for end in ((x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)):
                if end not in seen and self.open((x, y), end):
                    seen.add(end)
                    edge.append(end)
        return any(y == (0, self.size - 1)[seat] for _, y in seen)

    def fits(self, wall: str) -> bool:
        crossing = wall[:-1] + {"h": "v", "v": "h"}[wall[-1]]
        if wall in self.walls or crossing in self.walls or self.cuts(wall) & self.blocked:
            return False
        self.blocked |= self.cuts(wall)
        kept = self.reaches(0) and self.reaches(1)
        self.blocked -= self.cuts(wall)
        return kept

    def moves(self) -> set[str]:
        pawn = {name(square) for square in self.steps()}
        if self.left[self.mover] == 0:
            return pawn
        places = [name((x, y)) for x in range(self.size - 1) for y in range(self.size - 1)]
        return pawn | {wall for place in places for wall in (place + "h", place + "v") if self.fits(wall)}

    def act(self, move: str) -> None:
        if move[-1] in "hv":
            self.walls.add(move)
            self.blocked |= self.cuts(move)
            self.left[self.mover] -= 1
        else:
            self.pawns[self.mover] = (ord(move[0]) - ord("a"), int(move[1:]) - 1)
        self.mover, self.made = 1 - self.mover, self.made + 1

    def winner(self) -> int | None:
        return next((seat for seat in (0, 1) if self.pawns[seat][1] == (0, self.size - 1)[seat]), None)


def name(square: Square) -> str:
    return f"{chr(ord('a') + square[0])}{square[1] + 1}"


@pytest.mark.parametrize("params", [{"board_size": 3, "wall_count": 4}, {"board_size": 5}, SPEC.params(0)])
def test_the_rules_told_are_the_rules_played(params: dict[str, int]) -> None:
    variant = load_variant(find_game("quoridor"), params)
    rng, winners = random.Random(str(params)), set()
    for number in range(12 if params.get("board_size", 9) < 7 else 2):
        state = variant.game.new_initial_state()
        ours = Quoridor(variant.params["board_size"], variant.params["wall_count"])
        limit = 4 * ours.size**2
        while not state.is_terminal():
            seat = state.current_player()
            assert seat == ours.mover
            names = {state.action_to_string(seat, action): action for action in state.legal_actions()}
            assert set(names) == ours.moves()
            check_words(describe(state, seat), ours)
            # Every third game keeps away from the goal rows, to see the draw.
            inner = [n for n in names if number % 3 or n[-1] in "hv" or 1 < int(n[1:]) < ours.size]
            chosen = rng.choice(sorted(inner or names))
            state.apply_action(names[chosen])
            ours.act(chosen)
        winner = None if ours.made >= limit else ours.winner()
        assert winner is not None or ours.made == limit
        winners.add(winner)
        assert state.returns() == {None: [0, 0], 0: [1, -1], 1: [-1, 1]}[winner]
    assert None in winners


def check_words(text: str, ours: Quoridor) -> None:
    mine, theirs, made, files, *board = text.split("\n")
    size, seat, last = ours.size, ours.mover, 4 * ours.size**2
    for line, who, player in ((mine, "You", seat), (theirs, "Opponent", 1 - seat)):
        place = f"{'O@'[player]} at {name(ours.pawns[player])}, goal row {(1, size)[player]}"
        assert line == f"{who}: {place}, walls left {ours.left[player]}"
    assert made == f"Moves made: {ours.made} of {last}"
    rows = [line.ljust(2 * size + 3) for line in board]
    for x in range(size):
        at = files.index(chr(ord("a") + x))
        for y in range(size):
            assert rows[2 * y][:3].strip() == str(y + 1)
            pawn = next((mark for mark, p in zip("O@", ours.pawns, strict=True) if p == (x, y)), ".")
            assert rows[2 * y][at] == pawn
            right, below = frozenset(((x, y), (x + 1, y))), frozenset(((x, y), (x, y + 1)))
            assert (rows[2 * y][at + 1] == "|") == (right in ours.blocked)
            if y + 1 < size:
                assert (rows[2 * y + 1][at] == "-") == (below in ours.blocked)
                crossed = {name((x, y)) + "h", name((x, y)) + "v"} & ours.walls
                assert (rows[2 * y + 1][at + 1] == "+") == bool(crossed)


def test_a_description_in_full() -> None:
    # Both pawns step towards each other, Player 0 walls below b1, Player 1 right of d3.
    params = {"board_size": 5, "wall_count": 4}
    state = load_variant(find_game("quoridor"), params).game.new_initial_state()
    for move in ("c4", "c2", "b1h", "d3v", "c3"):
        state.apply_action(next(a for a in state.legal_actions() if state.action_to_string(a) == move))
    assert describe(state, 1) == (
        "You: @ at c2, goal row 5, walls left 3\n"
        "Opponent: O at c3, goal row 1, walls left 3\n"
        "Moves made: 5 of 100\n"
        "   a b c d e\n"
        " 1 . . . . .\n"
        "     -+-\n"
        " 2 . . @ . .\n"
        "\n"
        " 3 . . O .|.\n"
        "          +\n"
        " 4 . . . .|.\n"
        "\n"
        " 5 . . . . ."
    )
    # The jump straight over c3.
    assert "c4" in {state.action_to_string(action) for action in state.legal_actions()}


def test_rules_follow_the_parameters() -> None:
    text = rules(load_variant(find_game("quoridor"), SPEC.params(3)).params)
    assert "on 9 columns (a to i)" in text
    assert "one's 10 walls" in text
    assert "after 324 moves" in text
