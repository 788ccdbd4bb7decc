"""Hex: the game plays by the rules in its text."""

from __future__ import annotations

import random

import pytest

from game_gym.games.hex import SPEC, describe
from game_gym.spec import load_variant

# The neighbours that the rules give b2: a2, c2, b1, c1, b3, a3.
STEPS = [(-1, 0), (1, 0), (0, -1), (1, -1), (0, 1), (-1, 1)]


def connected(stones: set[tuple[int, int]], axis: int, size: int) -> bool:
    """Whether a chain of (column, row) goes from one edge to the other along ``axis``."""
    reached = [stone for stone in stones if stone[axis] == 0]
    for column, row in reached:
        reached += [
            cell for x, y in STEPS if (cell := (column + x, row + y)) in stones and cell not in reached
        ]
    return any(stone[axis] == size - 1 for stone in reached)


@pytest.mark.parametrize(("size", "swap"), [(3, False), (4, True), (5, False), (11, False)])
def test_the_rules_told_are_the_rules_played(size: int, swap: bool) -> None:
    game = load_variant(SPEC, {"board_size": size, "swap": swap}).game
    rng = random.Random(size)
    for play in range(10):
        state = game.new_initial_state()
        stones: list[set[tuple[int, int]]] = [set(), set()]
        turn = 0
        while not connected(stones[0], 1, size) and not connected(stones[1], 0, size):
            seat = turn % 2
            assert state.current_player() == seat
            assert read(describe(state, seat)) == stones
            cells = [(x, y) for y in range(size) for x in range(size) if (x, y) not in stones[0] | stones[1]]
            names = [f"{chr(97 + x)}{y + 1}" for x, y in cells] + ["swap"] * (swap and turn == 1)
            legal = state.legal_actions()
            assert [state.action_to_string(seat, action) for action in legal] == names
            choice = rng.randrange(len(cells))
            if swap and turn == 1 and play % 2:
                choice = -1
                column, row = stones[0].pop()
                stones[1].add((row, column))
            else:
                stones[seat].add(cells[choice])
            state.apply_action(legal[choice])
            turn += 1
        assert state.is_terminal()
        assert state.returns()[0] == (1 if connected(stones[0], 1, size) else -1)


def read(text: str) -> list[set[tuple[int, int]]]:
    rows = [line.split()[1:] for line in text.split("\n")[2:]]
    return [
        {(x, y) for y, row in enumerate(rows) for x, held in enumerate(row) if held == mark} for mark in "xo"
    ]


def test_a_description_in_full() -> None:
    state = load_variant(SPEC, {"board_size": 3}).game.new_initial_state()
    for action in (1, 6):  # b1, a3
        state.apply_action(action)
    assert describe(state, 0) == (
        "Your stones: x, to connect top and bottom\n   a b c\n1  . x .\n2   . . .\n3    o . ."
    )


def test_task_parameters() -> None:
    assert [SPEC.params(c) for c in range(5)] == [{"board_size": size} for size in (5, 7, 9, 11, 5)]
