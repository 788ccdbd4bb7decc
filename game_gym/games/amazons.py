"""Amazons: move like a queen, shoot an arrow, be the last who can move."""

from __future__ import annotations

from game_gym.spec import Budget, GameSpec, Params, State

_MARKS = "XO"


def rules(params: Params) -> str:
    """Returns the rules that OpenSpiel's amazons plays, by board size."""
    size = params["board_size"]
    return (
        f"Amazons on a board of {size} rows and {size} columns. Player 0 has four amazons X and moves first, "
        "Player 1 has four amazons O; turns alternate.\n"
        "A turn has three actions. From: choose one of your amazons that can move. To: move it any number of "
        "cells in a straight line, in any of the eight directions, over empty cells only. Shoot: from where "
        "it stands now it shoots an arrow, which flies the same way and stays where it lands; the cell that "
        "the amazon left is empty again. Amazons and arrows block both moves and arrows, and nothing is ever "
        "captured.\n"
        "Who begins a turn with no amazon that can move has lost.\n"
        "A cell (r, c) is row r from the top and column c from the left, both counted from 1. On the board "
        ". is an empty cell and # an arrow.\n"
        "Your return is 1 for a win, -1 for a loss."
    )


def describe(state: State, seat: int) -> str:
    """Returns the seat's letter, what the turn asks for, and the board without an amazon just picked up."""
    board = state.observation_string(seat).split()
    history = state.history()
    if len(history) % 3 == 0:
        step = "choose an amazon"
    else:
        row, column = divmod(history[-1], len(board))
        cell = f"({row + 1}, {column + 1})"
        step = f"move the amazon from {cell}" if len(history) % 3 == 1 else f"shoot from {cell}"
    return f"Your amazons: {_MARKS[seat]}\nNow: {step}\nBoard:\n{chr(10).join(board)}"


SPEC = GameSpec(
    name="amazons",
    notation=(
        "X or O for your side, then From, To or Shoot: and the cell in brackets, row and column from "
        "1, as X From (1, 4), X To (3, 6), X Shoot: (3, 2)."
    ),
    rules=rules,
    describe=describe,
    params=lambda config: {"board_size": 6 + 2 * (config % 3)},
    variants=3,
    allowed={"board_size": (6, 8, 10)},
    budget=Budget(200, 20),
)
