"""2048: the game plays by the rules in its text."""

from __future__ import annotations

import random
from typing import Any

from game_gym.games import find_game
from game_gym.games.game_2048 import describe
from game_gym.spec import load_variant

GAME = load_variant(find_game("2048"), {"max_tile": 64}).game


def slide(line: list[int]) -> tuple[list[int], list[bool]]:
    """A line slid towards its start, and which of its tiles were merged."""
    tiles, out, merged = [tile for tile in line if tile], [], []
    while tiles:
        first, twice = tiles.pop(0), False
        if tiles and tiles[0] == first:
            first, twice = first + tiles.pop(0), True
        out.append(first)
        merged.append(twice)
    empty = 4 - len(out)
    return out + [0] * empty, merged + [False] * empty


def turn(board: list[list[Any]], action: int) -> list[list[Any]]:
    """The board so turned that the move goes to the start of each line."""
    lines = [list(column) for column in zip(*board, strict=True)] if action in (0, 2) else board
    return [line[::-1] if action in (1, 2) else list(line) for line in lines]


def turn_back(lines: list[list[Any]], action: int) -> list[list[Any]]:
    lines = [line[::-1] if action in (1, 2) else line for line in lines]
    return [list(column) for column in zip(*lines, strict=True)] if action in (0, 2) else lines


def legal(board: list[list[int]], merged: list[list[bool]], action: int) -> bool:
    """Whether a tile slides, or merges with one ahead that the last move did not merge."""
    for line, marks in zip(turn(board, action), turn(merged, action), strict=True):
        for ahead, tile, mark in zip(line, line[1:], marks, strict=False):
            if tile and (not ahead or (ahead == tile and not mark)):
                return True
    return False


def test_the_rules_told_are_the_rules_played() -> None:
    rng, ends = random.Random(0), set()
    for _ in range(40):
        state, points = GAME.new_initial_state(), 0
        merged = [[False] * 4 for _ in range(4)]
        while not state.is_terminal():
            if state.is_chance_node():
                state.apply_action(rng.choice(state.legal_actions()))
                continue
            lines = describe(state, 0).split("\n")
            assert lines[0] == f"Points: {points}" and lines[1] == "Board:"
            board = [[int(tile) for tile in line.split()] for line in lines[2:]]
            assert state.legal_actions() == [a for a in range(4) if legal(board, merged, a)]
            action = rng.choice(state.legal_actions())
            slid = [slide(line) for line in turn(board, action)]
            after = turn_back([line for line, _ in slid], action)
            merged = turn_back([marks for _, marks in slid], action)
            paid = sum(after[r][c] for r in range(4) for c in range(4) if merged[r][c])
            state.apply_action(action)
            shown = [[int(tile) for tile in line.split()] for line in state.observation_string(0).split("\n")]
            assert shown[:4] == after and state.rewards() == [paid]
            points += paid
        assert state.returns() == [points]
        ends.add(" 64" in state.observation_string(0))
    assert ends == {True, False}  # by the tile and by having no move


def test_new_tiles() -> None:
    state = GAME.new_initial_state()
    chances = dict(state.chance_outcomes())
    # 16 empty cells, a 2 in nine of ten cases.
    assert len(chances) == 32
    assert sorted(set(round(p, 6) for p in chances.values())) == [0.00625, 0.05625]
    state.apply_action(next(iter(chances)))
    assert state.is_chance_node()  # two tiles at the start


def test_the_last_move_is_told_truly() -> None:
    rules = find_game("2048").rules
    assert "reaches 2048" in rules({"max_tile": 2048}) and "8192 moves" in rules({"max_tile": 2048})
    assert GAME.max_game_length() == 256 and "256 moves" in rules({"max_tile": 64})
