"""Go: the game plays by the rules in its text."""

from __future__ import annotations

import random

import pytest

from game_gym.games import find_game
from game_gym.games.go import SPEC, describe, rules
from game_gym.spec import load_variant

FILES = "abcdefghjklmnopqrst"
Point = tuple[int, int]


class Go:
    """The rules text, played: an implementation of its own. Points are (column, row), both from 0."""

    def __init__(self, size: int, komi: float) -> None:
        self.size, self.komi = size, komi
        self.stones: dict[Point, int] = {}
        self.seen = [dict(self.stones)]
        self.moves: list[str] = []
        self.ko: Point | None = None
        self.repeated = False

    def mover(self) -> int:
        return len(self.moves) % 2

    def beside(self, point: Point) -> list[Point]:
        x, y = point
        around = [(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)]
        return [(a, b) for a, b in around if 0 <= a < self.size and 0 <= b < self.size]

    def region(self, stones: dict[Point, int], start: Point) -> tuple[set[Point], set[Point]]:
        """The points joined to ``start`` that look like it, and the points around them."""
        inside, around, edge = {start}, set(), [start]
        while edge:
            for point in self.beside(edge.pop()):
                if stones.get(point) != stones.get(start):
                    around.add(point)
                elif point not in inside:
                    inside.add(point)
                    edge.append(point)
        return inside, around

    def after(self, point: Point) -> dict[Point, int] | None:
        """The stones after a move, or None if it may not be played."""
        if point in self.stones or point == self.ko:
            return None
        stones = {**self.stones, point: self.mover()}
        for enemy in self.beside(point):
            if stones.get(enemy) == 1 - self.mover():
                chain, around = self.region(stones, enemy)
                if all(p in stones for p in around):
                    stones = {p: c for p, c in stones.items() if p not in chain}
        _, around = self.region(stones, point)
        return None if all(p in stones for p in around) else stones

    def points(self) -> list[Point]:
        return [(x, y) for y in range(self.size) for x in range(self.size)]

    def legal(self) -> list[str]:
        return [name(p) for p in self.points() if self.after(p) is not None] + ["PASS"]

    def repeating(self) -> list[str]:
        return [name(p) for p in self.points() if self.after(p) in self.seen]

    def act(self, move: str) -> None:
        if move == "PASS":
            self.ko = None
        else:
            point = (FILES.index(move[0]), int(move[1:]) - 1)
            stones = self.after(point)
            assert stones is not None
            taken = [p for p in self.stones if p not in stones]
            # A single stone that took a single stone, and stands where that one could take it back.
            surrounded = all(self.stones.get(p) == 1 - self.mover() for p in self.beside(point))
            self.ko = taken[0] if len(taken) == 1 and surrounded else None
            self.repeated = stones in self.seen
            self.seen.append(stones)
            self.stones = stones
        self.moves.append(move)

    def over(self) -> bool:
        passes = self.moves[-2:] == ["PASS", "PASS"]
        return self.repeated or passes or len(self.moves) == 2 * self.size**2

    def returns(self) -> list[int]:
        if self.repeated:
            return [0, 0]
        totals = [0.0, self.komi]
        for point in self.points():
            if point in self.stones:
                totals[self.stones[point]] += 1
                continue
            colours = {self.stones[p] for p in self.region(self.stones, point)[1]}
            if len(colours) == 1:
                totals[colours.pop()] += 1
        return [1, -1] if totals[0] > totals[1] else [-1, 1]


def name(point: Point) -> str:
    return f"{FILES[point[0]]}{point[1] + 1}"


@pytest.mark.parametrize(("size", "komi", "games"), [(5, 7.5, 25), (5, 0.5, 25), (7, 7.5, 4), (9, 6.5, 1)])
def test_the_rules_told_are_the_rules_played(size: int, komi: float, games: int) -> None:
    game = load_variant(find_game("go"), {"board_size": size, "komi": komi}).game
    rng, ends = random.Random(komi), set()
    for number in range(games):
        state, ours = game.new_initial_state(), Go(size, komi)
        while not state.is_terminal():
            seat = state.current_player()
            assert seat == ours.mover()
            names = {state.action_to_string(seat, action): action for action in state.legal_actions()}
            assert list(names) == [f"{'BW'[seat]} {move}" for move in ours.legal()]
            repeating = ours.repeating()
            check_words(describe(state, seat), ours, repeating)
            # Every other game takes the first chance to repeat a position, and passes last.
            choices = ours.legal() if number % 2 else repeating or ours.legal()[:-1] or ["PASS"]
            move = rng.choice(choices)
            state.apply_action(names[f"{'BW'[seat]} {move}"])
            ours.act(move)
        assert ours.over()
        assert state.returns() == ours.returns()
        ends.add(state.returns()[0])
    assert size > 5 or 0 in ends


def check_words(text: str, ours: Go, repeating: list[str]) -> None:
    side, *board, files, moves, repeats = text.split("\n")
    assert side == ("You: black, X", "You: white, O")[ours.mover()]
    assert files.split() == list(FILES[: ours.size])
    for line in board:
        label, *marks = line.split()
        row = int(label) - 1
        assert marks == [{None: ".", 0: "X", 1: "O"}[ours.stones.get((x, row))] for x in range(ours.size)]
        assert [line[files.index(FILES[x])] for x in range(ours.size)] == marks
    head = f"Moves ({len(ours.moves)} of {2 * ours.size**2}, black first): "
    assert moves == head + (" ".join(ours.moves) or "none")
    assert repeats == f"Repeating: {' '.join(repeating) or 'none'}"


def test_a_description_in_full() -> None:
    state = load_variant(find_game("go"), SPEC.params(0)).game.new_initial_state()
    for move in ("B b1", "W PASS", "B a2", "W c3", "B e5"):
        state.apply_action(state.string_to_action(move))
    assert "W a1" not in {state.action_to_string(action) for action in state.legal_actions()}  # suicide
    assert describe(state, 1) == (
        "You: white, O\n"
        " 5 . . . . X\n"
        " 4 . . . . .\n"
        " 3 . . O . .\n"
        " 2 X . . . .\n"
        " 1 . X . . .\n"
        "   a b c d e\n"
        "Moves (5 of 50, black first): b1 PASS a2 c3 e5\n"
        "Repeating: none"
    )


def test_a_large_board_has_room_for_its_labels() -> None:
    state = load_variant(find_game("go"), {"board_size": 19}).game.new_initial_state()
    state.apply_action(state.string_to_action("B t19"))
    lines = describe(state, 1).split("\n")
    assert lines[1] == "19 " + ". " * 18 + "X"
    assert lines[20] == "   " + " ".join(FILES)


def test_rules_follow_the_parameters() -> None:
    text = rules(load_variant(find_game("go"), SPEC.params(1)).params)
    assert "board of 7 by 7" in text
    assert "after 98 moves" in text
    assert "White adds 7.5" in text
